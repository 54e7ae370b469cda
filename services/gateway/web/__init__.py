"""How REST looks on the wire: errors, parameters, answers, limits (REST spec, section 1)."""

"""HTTP, whatever is said by it: sessions, limits, queries, errors, answers (REST spec, section 1)."""

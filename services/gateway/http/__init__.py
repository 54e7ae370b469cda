"""The HTTP layer: sessions, limits, queries, errors and answers (REST spec, section 1)."""

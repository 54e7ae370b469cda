"""Determined's 0.25 API and our additions to it: routes by noun, and the presentation of records."""

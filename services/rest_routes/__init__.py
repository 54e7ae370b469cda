"""Determined's 0.25 REST API and our additions to it: routes by topic, and the presentation of records."""

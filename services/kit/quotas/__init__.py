"""Quotas: how much users, groups and workspaces may have of slots, jobs and storage (decision 47).

`records.py` is what owners of facts fold, `usage.py` adds up what is had, `limits.py` says who is limited by
what and what a person is told.
"""

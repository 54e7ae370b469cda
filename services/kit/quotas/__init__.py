"""Quotas: how many slots, jobs and how much storage users, groups and workspaces may use (decision 47).

Owners of facts fold `records.py`. `usage.py` sums up what is used. `limits.py` says which limits apply and
builds the messages for users.
"""

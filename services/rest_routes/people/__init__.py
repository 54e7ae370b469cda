"""Users, groups, roles, quotas, sign-in and sessions, and the audit log."""

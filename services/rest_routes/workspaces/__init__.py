"""Workspaces, projects, templates and webhooks."""

"""Experiments: creation, search, changes, previews, code, events, and why they are in their state."""

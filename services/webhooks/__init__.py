"""Notifies receivers that users choose when experiments change their state."""

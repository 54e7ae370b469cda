"""Decides which reports are valid and new, and keeps metrics and log lines for queries."""

"""Decides which reports are valid and new; keeps metrics and log lines where they can be asked for."""

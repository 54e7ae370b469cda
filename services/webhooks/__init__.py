"""Tells receivers of people's choice when experiments change their state."""

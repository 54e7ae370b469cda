"""Programs that the platform runs inside tasks. Not for direct use."""

"""Programs that the platform runs inside tasks; not for users."""

"""What a client of the master meets: its errors."""

"""Log lines: how they are stored and found."""

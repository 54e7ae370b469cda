"""Log lines: how they are kept and found."""

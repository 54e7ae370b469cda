"""What the process is made of, and what it settles when it starts."""

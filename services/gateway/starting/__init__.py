"""What the gateway settles at startup, before it answers."""

"""The parts of the gateway process, and what it settles at startup."""

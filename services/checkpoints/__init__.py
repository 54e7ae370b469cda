"""Keeps the registry of checkpoints, and decides which are deleted when an experiment has ended."""

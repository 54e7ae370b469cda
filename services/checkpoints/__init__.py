"""Keeps the registry of checkpoints, and decides which ones go when an experiment has ended."""

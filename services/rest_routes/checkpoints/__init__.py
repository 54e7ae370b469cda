"""Checkpoints, their retention, and the models that are registered from them."""

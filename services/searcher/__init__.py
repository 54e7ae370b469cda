"""Decides which trials exist, how far each trains, and in which state experiments and trials are."""

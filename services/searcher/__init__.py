"""Decides which trials exist, how far each trains, and the states of experiments and trials."""

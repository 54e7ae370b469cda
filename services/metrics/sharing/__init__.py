"""Several metrics processes that share the trials: how they agree on it, and how they answer together."""

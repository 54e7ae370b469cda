"""The intake: the only service that admits messages of scripts and workers to the log."""

"""The intake: the only one that admits what scripts and workers say to the log."""

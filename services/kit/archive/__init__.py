"""The archived part of CONTROL and how to read it: a chain of segments in a directory or bucket."""

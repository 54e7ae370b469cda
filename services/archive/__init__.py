"""Moves the beginning of CONTROL out of the broker: seals segments, reads them back, then cuts the stream."""

"""Trials: what their scripts report and ask, and the metrics that people read."""

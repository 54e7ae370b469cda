"""Definitions shared by all parts of Steadfast: messages, names, states and the experiment configuration.

Pure data and pure functions. The package depends only on msgspec and the standard library.
"""

"""What every part of Steadfast agrees on: messages, names, states and the experiment configuration.

Pure data and pure functions; the package needs msgspec and the standard library alone.
"""

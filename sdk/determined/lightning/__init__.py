"""Training by Lightning's Trainer as a trial of the platform.

Needs the package `lightning`; nothing else of the library does.
"""

from determined.lightning._callback import DetCallback

__all__ = ["DetCallback"]

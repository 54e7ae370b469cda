"""Training by Lightning's Trainer as a trial of the platform.

Needs the package `lightning`; nothing else of the library does.
"""

from determined import _absent
from determined.lightning._callback import DetCallback

_absent.explain_in(__name__)

__all__ = ["DetCallback"]

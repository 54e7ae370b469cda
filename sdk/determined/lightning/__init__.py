"""Training with Lightning's Trainer as a trial of the platform.

Requires the package `lightning`; the rest of the library does not.
"""

from determined import _absent
from determined.lightning._callback import DetCallback

_absent.explain_in(__name__)

__all__ = ["DetCallback"]

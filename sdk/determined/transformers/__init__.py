"""Training with Hugging Face's Trainer as a trial of the platform (transformers spec).

Requires the package `transformers`; the rest of the library does not.
"""

from determined.transformers._callback import DetCallback

__all__ = ["DetCallback"]

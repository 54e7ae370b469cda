"""Training by Hugging Face's Trainer as a trial of the platform (transformers spec).

Needs the package `transformers`; nothing else of the library does.
"""

from determined.transformers._callback import DetCallback

__all__ = ["DetCallback"]

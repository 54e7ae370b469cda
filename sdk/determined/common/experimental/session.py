"""Sessions of the client, by the name that older scripts import."""

from determined.common.api import Session

__all__ = ["Session"]

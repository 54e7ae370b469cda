"""Connections of the client, by the name that older scripts import."""

from determined.experimental.client import Determined

__all__ = ["Determined"]

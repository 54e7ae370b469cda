"""Users of the client, by the name that older scripts import."""

from determined.experimental.client import User

__all__ = ["User"]

"""How a verb says that it could not do what was asked."""

from __future__ import annotations


class Failure(Exception):
    """Ends the command with status 1 and this reason in red."""

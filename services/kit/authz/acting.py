"""The script on whose behalf a command is given. A script has fewer rights than its user."""

from __future__ import annotations

from contextvars import ContextVar

HEADER = "Steadfast-Script"
"""Header of a command on the bus: the run (allocation id) whose script asked for it."""
SCRIPT: ContextVar[str] = ContextVar(HEADER, default="")
"""The run whose script made the current request; empty for a user's request."""

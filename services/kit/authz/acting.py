"""In whose name a command is given, beside its user: a script's run, which may do less than the user."""

from __future__ import annotations

from contextvars import ContextVar

HEADER = "Steadfast-Script"
"""Stands beside a command on the bus: the run (allocation id) whose script asked for it."""
SCRIPT: ContextVar[str] = ContextVar(HEADER, default="")
"""The run whose script the running task answers; empty for a person's request."""

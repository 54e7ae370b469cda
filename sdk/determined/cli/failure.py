"""The exception for a verb that cannot do what was requested."""

from __future__ import annotations


class Failure(Exception):
    """Ends the command with this reason in red."""

    status = 1
    """Exit status of the command."""


class CannotOpen(Failure):
    """A file that was named on the command line cannot be opened: the command was not typed right."""

    status = 2

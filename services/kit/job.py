"""Describes a piece of heavy work. The child process loads this module, but not `offload`."""

from __future__ import annotations

import msgspec


class Job(msgspec.Struct, frozen=True):
    """A kind of heavy work: a function `(argument, *files)` of some module, without any other input.

    Argument and value must be representable in JSON, except that a `bytes` value is passed as is. A `Refused`
    raised by the function is raised to the caller.
    """

    function: str
    """`package.module:name`."""
    seconds: int = 10
    """Limit of processor time in seconds."""

"""What a piece of heavy work is; who does it loads this, and not what hands it out (`offload`)."""

from __future__ import annotations

import msgspec


class Job(msgspec.Struct, frozen=True):
    """A kind of heavy work: a function `(argument, *files)` of some module, which knows nothing else.

    Argument and value are what JSON can hold; a value that is `bytes` is handed over as it is. What it
    refuses by `Refused` is refused to the caller.
    """

    function: str
    """`package.module:name`."""
    seconds: int = 10
    """Of processor time."""

"""The files that come with an experiment or a task."""

from __future__ import annotations

import msgspec


class Context(msgspec.Struct, frozen=True):
    """Where the code of an experiment lies: a tar.gz in the blob store."""

    digest: str
    """SHA-256 of the archive, also its key in the store."""
    size_bytes: int

"""The files submitted with an experiment or a task."""

from __future__ import annotations

import msgspec


class Context(msgspec.Struct, frozen=True):
    """Location of an experiment's code: a tar.gz archive in the blob store."""

    digest: str
    """SHA-256 of the archive, which is also its key in the store."""
    size_bytes: int

"""Requests that may be large: what is more than a little lies in a file without a name, and not in memory."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO, cast

from starlette.requests import Request

from services.kit.admission import Admission

SMALL_BYTES = 256 << 10
"""What is read at once, in a thread at most."""
CHUNK_BYTES = 1 << 20


class Spooled:
    """The body of a request."""

    def __init__(self, key: bytes, about: bytes) -> None:
        self.size = 0
        self.file: BinaryIO | None = None
        """Where it lies, once it is large."""
        self._memory = io.BytesIO()
        self._digest = hmac.new(key, about, hashlib.sha256)

    @property
    def small(self) -> bytes | None:
        """All of it, while it is small."""
        return self._memory.getvalue() if self.file is None else None

    def digest(self) -> str:
        """Tells this request from others, to us alone: the key goes into it."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Take a part. Blocking."""
        self.size += len(chunk)
        self._digest.update(chunk)
        if self.file is None and self.size > SMALL_BYTES:
            self.file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed by `close`
            self.file.write(self._memory.getvalue())
        (self.file or self._memory).write(chunk)

    def close(self) -> None:
        """Forget it."""
        if self.file is not None:
            self.file.close()


@asynccontextmanager
async def spooled(request: Request, key: bytes, uploads: Admission, who: str) -> AsyncIterator[Spooled]:
    """The whole body of a request. Raises `Busy` where `who` has too many large ones under way in `uploads`.

    `key` goes into its digest.
    """
    body = Spooled(key, f"{request.method} {request.url.path}\n".encode())
    inside = False
    try:
        async for chunk in _in_pieces(request):
            if body.size + len(chunk) > SMALL_BYTES and not inside:
                await uploads.enter(who)
                inside = True
            await asyncio.to_thread(body.write, chunk) if inside else body.write(chunk)
        if body.file is not None:
            body.file.flush()
        yield body
    finally:
        if inside:
            uploads.leave(who)
        body.close()


async def _in_pieces(request: Request) -> AsyncIterator[bytes]:
    """What comes, in parts of some size: each costs a thread."""
    parts, size = list[bytes](), 0
    async for chunk in request.stream():
        parts.append(chunk)
        size += len(chunk)
        if size >= CHUNK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)

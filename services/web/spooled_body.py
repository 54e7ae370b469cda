"""Request bodies that may be large: beyond a small size they are kept in an unnamed file, not in memory."""

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
"""Bodies up to this size are kept in memory."""
CHUNK_BYTES = 1 << 20


class SpooledBody:
    """The body of a request."""

    def __init__(self, key: bytes, about: bytes) -> None:
        self.size = 0
        self.file: BinaryIO | None = None
        """The file that holds it, once it is large."""
        self._memory = io.BytesIO()
        self._digest = hmac.new(key, about, hashlib.sha256)

    @property
    def in_memory(self) -> bytes | None:
        """The whole body while it is small, else None."""
        return self._memory.getvalue() if self.file is None else None

    def digest(self) -> str:
        """Return a keyed digest that identifies this request to us only."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append a part. Blocking."""
        self.size += len(chunk)
        self._digest.update(chunk)
        if self.file is None and self.size > SMALL_BYTES:
            self.file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed by `close`
            self.file.write(self._memory.getvalue())
        (self.file or self._memory).write(chunk)

    def close(self) -> None:
        """Discard the body."""
        if self.file is not None:
            self.file.close()


@asynccontextmanager
async def spool_body(
    request: Request, key: bytes, uploads: Admission, who: str
) -> AsyncIterator[SpooledBody]:
    """Read the whole body of a request. Raises `Busy` if `who` has too many large ones in `uploads`.

    `key` is used for its digest.
    """
    body = SpooledBody(key, f"{request.method} {request.url.path}\n".encode())
    is_admitted = False
    try:
        async for chunk in _large_chunks(request):
            # Small bodies need no place, so that others' uploads never keep them waiting.
            if body.size + len(chunk) > SMALL_BYTES and not is_admitted:
                await uploads.acquire(who)
                is_admitted = True
            # A small body costs less than the change of threads.
            await asyncio.to_thread(body.write, chunk) if is_admitted else body.write(chunk)
        if body.file is not None:
            body.file.flush()
        yield body
    finally:
        if is_admitted:
            uploads.release(who)
        body.close()


async def _large_chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body in larger parts, because each one costs a thread."""
    parts, size = list[bytes](), 0
    async for chunk in request.stream():
        parts.append(chunk)
        size += len(chunk)
        if size >= CHUNK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)

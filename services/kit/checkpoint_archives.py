"""A checkpoint as a tar archive that is built while it is sent, without buffering it in memory or on disk."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gzip
import tarfile
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from typing import IO, cast

from services.kit.checkpoint_files import CheckpointFiles, File

CHUNK_BYTES = 1 << 18
CHUNKS_AHEAD = 1
"""Packing holds up the event loop, too, so it goes no further ahead of a reader who waits for a turn."""
MODE, DIRECTORY_MODE = 0o644, 0o755


class _Gone(Exception):
    """The reader disconnected."""


class _Pipe:
    """The file object that `tarfile` writes to in a thread. Chunks wait until the reader takes them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(CHUNKS_AHEAD)
        self._gone = False

    def write(self, data: bytes) -> int:
        """Pass data on to the reader. Raises `_Gone`."""
        self._put(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is buffered here."""

    def end(self) -> None:
        """Signal the end of the data."""
        with contextlib.suppress(_Gone):
            self._put(None)

    def _put(self, chunk: bytes | None) -> None:
        if self._gone:
            raise _Gone
        waiting = asyncio.run_coroutine_threadsafe(self._chunks.put(chunk), self._loop)
        while True:
            try:
                return waiting.result(timeout=1.0)
            except concurrent.futures.TimeoutError:
                if self._gone:
                    waiting.cancel()
                    raise _Gone from None

    def leave(self) -> None:
        """Signal that the reader has gone."""
        self._gone = True

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the chunks as they arrive."""
        while (chunk := await self._chunks.get()) is not None:
            yield chunk


async def stream(
    threads: Executor, source: CheckpointFiles, files: Sequence[File], at: float, *, packed: bool
) -> AsyncIterator[bytes]:
    """Yield the bytes of the archive. Raises `FilesMissing`, in which case the archive is truncated.

    Occupies one of `threads` for as long as the reader takes.
    """
    loop = asyncio.get_running_loop()
    pipe = _Pipe(loop)
    work = loop.run_in_executor(threads, _write, pipe, source, files, int(at), packed)
    try:
        async for chunk in pipe.read():
            yield chunk
        await work
    finally:
        pipe.leave()
        with contextlib.suppress(Exception):
            await work


def _write(pipe: _Pipe, source: CheckpointFiles, files: Sequence[File], at: int, packed: bool) -> None:
    try:
        with contextlib.ExitStack() as stack:
            target = cast("IO[bytes]", pipe)
            if packed:
                # Weights hardly compress, and trying it takes a processor for each 30 MB/s, which answers to
                # others then lack.
                packer = gzip.GzipFile(fileobj=target, mode="wb", compresslevel=0, mtime=at)
                target = cast("IO[bytes]", stack.enter_context(packer))
            archive = stack.enter_context(tarfile.open(mode="w|", fileobj=target, bufsize=CHUNK_BYTES))
            for file in files:
                _add(archive, source, file, at)
    finally:
        pipe.end()


def _add(archive: tarfile.TarFile, source: CheckpointFiles, file: File, at: int) -> None:
    entry = tarfile.TarInfo(file.name.rstrip("/"))
    entry.mtime = at
    if file.name.endswith("/"):
        entry.type, entry.mode = tarfile.DIRTYPE, DIRECTORY_MODE
        archive.addfile(entry)
        return
    entry.size, entry.mode = file.size_bytes, MODE
    with source.read(file) as content:
        archive.addfile(entry, content)

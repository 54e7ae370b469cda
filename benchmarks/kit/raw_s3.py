"""The limit of a machine and its S3 server: bare sockets, prepared requests, no checks."""

from __future__ import annotations

import os
import queue
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

RANGE_BYTES = 64 << 20
SOCKETS = 4
_BUFFER_BYTES = 256 << 10
_HEAD_BYTES = 4096


class Piece(NamedTuple):
    """A range of an object, and where it goes."""

    request: bytes
    target: Path
    offset: int
    length: int


def pieces_of(signed: dict[str, tuple[str, int]], target: Path) -> list[Piece]:
    """Ranges of the given objects, name: (URL, bytes)."""
    pieces = []
    for name, (url, size) in signed.items():
        parts = urlsplit(url)
        for offset in range(0, size, RANGE_BYTES):
            length = min(RANGE_BYTES, size - offset)
            request = (
                f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                f"Range: bytes={offset}-{offset + length - 1}\r\n\r\n"
            )
            pieces.append(Piece(request.encode(), target / name, offset, length))
    return pieces


def fetch(address: tuple[str, int], pieces: list[Piece], keeps: bool) -> None:
    """Fetch all pieces with a few threads; write or discard them."""
    waiting: queue.SimpleQueue[Piece] = queue.SimpleQueue()
    for piece in pieces:
        waiting.put(piece)
    with ThreadPoolExecutor(SOCKETS) as pool:
        for done in [pool.submit(_work, address, waiting, keeps) for _ in range(SOCKETS)]:
            done.result()


def _work(address: tuple[str, int], waiting: queue.SimpleQueue[Piece], keeps: bool) -> None:
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    with socket.create_connection(address) as connection:
        while True:
            try:
                piece = waiting.get_nowait()
            except queue.Empty:
                return
            connection.sendall(piece.request)
            fd = os.open(piece.target, os.O_WRONLY | os.O_CREAT) if keeps else -1
            _receive(connection, piece, buffer, fd)
            if keeps:
                os.close(fd)


def _receive(connection: socket.socket, piece: Piece, buffer: memoryview, fd: int) -> None:
    come = connection.recv_into(buffer[:_HEAD_BYTES])
    head, end, _ = bytes(buffer[:come]).partition(b"\r\n\r\n")
    if not end or head[9:12] not in (b"200", b"206"):
        raise RuntimeError(f"the server answered {head!r}")
    begun = len(head) + len(end)
    done, at = 0, begun
    while True:
        if fd >= 0:
            os.pwrite(fd, buffer[at:come], piece.offset + done)
        done, at = done + come - at, 0
        if done >= piece.length:
            return
        come = connection.recv_into(buffer[: piece.length - done], 0, socket.MSG_WAITALL)
        if not come:
            raise RuntimeError("the server closed the connection")

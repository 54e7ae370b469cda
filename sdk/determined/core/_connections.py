"""Framed connections between the processes of a job, authenticated by the job's secret.

Nothing from an unauthenticated peer is unpickled (core API spec, section 5, b).
"""

import contextlib
import errno
import hmac
import os
import select
import socket
import struct

_HEADER = struct.Struct("!BQQ")
"""Kind, call number, length of the payload."""
_HELLO = struct.Struct("!IIB")
"""Rank, size, channel."""
_NONCE = 16
_MAC = 32
_INTRODUCTION = _NONCE + _HELLO.size + _MAC
_OK, _WRONG_SIZE, _RANK_TAKEN = 0, 1, 2
_LARGE_BYTES = 64 * 1024
_QUIET_S, _PROBE_S, _PROBES = 4, 3, 3
"""Keepalive settings: a host that vanishes is detected after 4 + 3 * 3 s."""

DATA, LIFE = 0, 1
"""Channels of a rank: one for collectives, and a lifeline whose end signals that the rank has died."""


class Gone(Exception):
    """The peer has closed the connection or died."""

    def __init__(self, why: str, *, silent: bool = False) -> None:
        super().__init__(why)
        self.silent = silent
        """Whether the host stopped responding, so that data sent earlier may also be lost."""


class NotAdmitted(RuntimeError):
    """The chief knows the secret but rejects this rank."""


class Link:
    """One connection that carries frames."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.settimeout(None)
        if connection.family != socket.AF_UNIX:
            # Collectives are short messages to and fro, each of which would otherwise wait for more to send.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _notice_dead_hosts(connection)

    def send(self, kind: int, call: int, *parts: bytes | bytearray) -> None:
        """Send one frame. Raises `Gone`."""
        length = sum(map(len, parts))
        pieces = (_HEADER.pack(kind, call, length), *parts)
        try:
            # Small parts are joined into one write; large ones are not worth copying.
            for piece in pieces if length > _LARGE_BYTES else (b"".join(pieces),):
                self.socket.sendall(piece)
        except OSError as error:
            raise _gone(error) from error

    def receive(self) -> tuple[int, int, bytearray]:
        """Return (kind, call number, payload) of the next frame. Raises `Gone`."""
        kind, call, length = _HEADER.unpack(_read(self.socket, _HEADER.size))
        return kind, call, _read(self.socket, length)

    def is_dead(self) -> bool:
        """Whether the peer has closed the connection."""
        looked = select.poll()
        looked.register(self.socket, getattr(select, "POLLRDHUP", select.POLLHUP))
        return bool(looked.poll(0))

    def cut(self) -> None:
        """Shut down the connection for both peers, and for a thread blocked on it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.socket.close()


def _gone(error: OSError) -> Gone:
    silent = error.errno in (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)
    return Gone(error.strerror or str(error), silent=silent)


def _notice_dead_hosts(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", _QUIET_S), ("TCP_KEEPINTVL", _PROBE_S), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _read(connection: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    left = memoryview(content)
    while left:
        try:
            count = connection.recv_into(left)
        except OSError as error:
            raise _gone(error) from error
        if count == 0:
            raise Gone("the connection was closed")
        left = left[count:]
    return content


def challenge(connection: socket.socket) -> bytes:
    """Begin the chief's side of the handshake: send random bytes, which the peer's proof has to contain."""
    # Each side adds random bytes, so that no recorded handshake can be replayed, and a word for its role,
    # so that no proof can be sent back as the answer.
    ours = os.urandom(_NONCE)
    connection.sendall(ours)
    return ours


def has_answered(connection: socket.socket) -> bool:
    """Whether all that `welcome` reads has arrived. Raises `Gone` if the peer has left before."""
    try:
        count = len(connection.recv(_INTRODUCTION, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False
    except OSError as error:
        raise _gone(error) from error
    if count == 0:
        raise Gone("the connection was closed")
    return count == _INTRODUCTION


def welcome(
    connection: socket.socket, ours: bytes, size: int, taken: set[tuple[int, int]], key: bytes
) -> tuple[int, int]:
    """End the chief's side of the handshake. Returns (rank, channel). Raises `Gone` for strangers."""
    peer_nonce, hello, proof = _cut(_read(connection, _INTRODUCTION), _NONCE, _HELLO.size)
    if not hmac.compare_digest(proof, _mac(key, b"join", ours, peer_nonce, hello)):
        raise Gone("a process that does not know the secret of this job")
    rank, said_size, channel = _HELLO.unpack(hello)
    status = _WRONG_SIZE if said_size != size or not 0 < rank < size else _OK
    status = _RANK_TAKEN if (rank, channel) in taken else status
    connection.sendall(bytes([status]) + _mac(key, b"here", peer_nonce, ours, bytes([status])))
    if status != _OK:
        raise Gone(f"rank {rank} of {said_size}, in a job of {size}, or already connected")
    return rank, channel


def introduce(connection: socket.socket, rank: int, size: int, channel: int, key: bytes) -> None:
    """Perform the other side. Raises `Gone` if the peer is not part of the job, and `NotAdmitted`."""
    peer_nonce, ours = _read(connection, _NONCE), os.urandom(_NONCE)
    hello = _HELLO.pack(rank, size, channel)
    connection.sendall(ours + hello + _mac(key, b"join", peer_nonce, ours, hello))
    status, proof = _cut(_read(connection, 1 + _MAC), 1)
    if not hmac.compare_digest(proof, _mac(key, b"here", ours, peer_nonce, status)):
        raise Gone("a process that does not know the secret of this job")
    if status[0] == _WRONG_SIZE:
        raise NotAdmitted(f"rank {rank} expects a job of {size} processes, but its chief does not")
    if status[0] == _RANK_TAKEN:
        raise NotAdmitted(f"rank {rank} is already connected; give each process its own rank")


def _cut(text: bytearray, *lengths: int) -> list[bytearray]:
    parts = []
    for length in lengths:
        parts.append(text[:length])
        text = text[length:]
    return [*parts, text]


def _mac(key: bytes, *parts: bytes | bytearray) -> bytes:
    return hmac.digest(key or b"no secret", b"".join(parts), "sha256")

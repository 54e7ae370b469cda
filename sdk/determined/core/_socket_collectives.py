"""Collectives over connections from all ranks to the first one (core API spec, section 5).

Every frame names its collective and the call number, so that ranks that are out of step get a clear error. In
addition to the data connection, each rank has a lifeline to the chief. A rank that ends without a goodbye on
its lifeline breaks the group for all ranks, including those waiting for another rank.
"""

import atexit
import contextlib
import os
import pickle
import select
import socket
import struct
import threading
from typing import Any, NoReturn

from determined.core._connections import Gone, Link

READY, GATHER, ALLGATHER, BROADCAST, DONE, BYE, ERROR = range(7)
_NAMES = {GATHER: "gather", ALLGATHER: "allgather", BROADCAST: "broadcast"}
_EAGER_BYTES = 16 * 1024
"""Values up to this size fit into any connection's buffers and are sent without waiting for a request."""
_REASON_S = 1.0
_LENGTH = struct.Struct("!Q")


def _dump(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


class _SocketGroup:
    """Shared by chief and followers. `links` and `lines` are keyed by the rank of the peer."""

    def __init__(self, links: dict[int, Link], lines: dict[int, Link]) -> None:
        self._links = links
        self._lines = lines
        self._calls = 0
        self._why = ""
        self._left: set[int] = set()
        self._reason_arrived = threading.Event()
        self._closed = False
        self._owner = os.getpid()
        # To end the watcher: closing a socket does not wake a thread that polls it.
        self._wake, self._woken = socket.socketpair()
        self._watch = threading.Thread(target=self._watch_lines, name="determined-ranks", daemon=True)
        self._watch.start()
        # A rank that exits, even by an error, says goodbye. Only one that was killed counts as dead.
        atexit.register(self.close)

    def _begin(self) -> int:
        if self._closed:
            raise RuntimeError("a collective was called after close() of the DistributedContext")
        self._calls += 1
        return self._calls

    def _expect(self, peer: int, kind: int, call: int, mine: int) -> bytearray:
        """Receive a peer's next frame of that kind and call number. `mine` is this rank's call."""
        sent_kind, its_call, content = self._links[peer].receive()
        if sent_kind == ERROR:
            raise RuntimeError(content.decode())
        if (sent_kind, its_call) != (kind, call):
            self._out_of_step(peer, sent_kind, its_call, mine, call)
        return content

    def _out_of_step(self, peer: int, kind: int, its_call: int, mine: int, call: int) -> NoReturn:
        peer_call = _NAMES.get(kind, "the end of a gather")
        self._fail(
            f"out-of-order collectives: rank {peer} is in {peer_call} (its call {its_call}) while rank "
            f"{self._rank()} is in {_NAMES[mine]} (its call {call}); all ranks must make the same calls"
        )

    def _rank(self) -> int:
        raise NotImplementedError

    def _peer_gone(self, peer: int) -> NoReturn:
        """Raise after a connection has ended, with the reason that the lifeline reports."""
        self._reason_arrived.wait(_REASON_S)
        self._fail(self._why or f"rank {peer} of this job has {'left' if peer in self._left else 'gone'}")

    def _fail(self, why: str) -> NoReturn:
        self._break(why)
        raise RuntimeError(self._why)

    def _break(self, why: str) -> None:
        """Break the group: notify all peers and end all waiting."""
        self._why = self._why or why
        self._reason_arrived.set()
        # First the reason, then the cut: a peer whose connection just ends would have to guess.
        for line in self._lines.values():
            with contextlib.suppress(Gone):
                line.send(ERROR, 0, self._why.encode())
        for link in self._links.values():
            link.cut()

    def _watch_lines(self) -> None:
        watched = select.poll()
        watched.register(self._woken, select.POLLIN)
        peers = {line.socket.fileno(): peer for peer, line in self._lines.items()}
        for number in peers:
            watched.register(number, select.POLLIN)
        while True:
            for number, _ in watched.poll():
                if number not in peers:
                    return
                # A lifeline carries a single message. After its end, `poll` would report it again and again.
                watched.unregister(number)
                self._hear(peers[number])

    def _hear(self, peer: int) -> None:
        """Handle the single message on a lifeline, or its end."""
        try:
            kind, _, content = self._lines[peer].receive()
        except Gone as error:
            self._why = self._why or f"rank {peer} of this job has died: {error}"
            self._on_death(error)
        else:
            if kind == ERROR:
                self._why = self._why or content.decode()
                self._on_error()
            else:
                self._left.add(peer)
        self._reason_arrived.set()

    def _on_death(self, error: Gone) -> None:
        raise NotImplementedError

    def _on_error(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Leave the group. Calling it twice is allowed."""
        # A forked process has the same sockets and must not say goodbye for its parent.
        if self._closed or os.getpid() != self._owner:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._wake.close()
        # Before the lines are closed, which the watcher reads.
        self._watch.join()
        self._woken.close()
        for line in self._lines.values():
            with contextlib.suppress(Gone):
                line.send(BYE, 0)
            line.close()
        for link in self._links.values():
            link.close()


class Chief(_SocketGroup):
    """Rank 0, to which all others are connected."""

    def __init__(self, size: int, links: dict[int, Link], lines: dict[int, Link]) -> None:
        super().__init__(links, lines)
        self._size = size

    def _rank(self) -> int:
        return 0

    def gather(self, value: Any) -> list[Any]:
        """Return all values by rank."""
        call, contents = self._collect(GATHER)
        self._tell(DONE, call)
        return [value, *map(pickle.loads, contents)]

    def allgather(self, value: Any) -> list[Any]:
        """Return all values by rank, as on all other ranks."""
        own = _dump(value)
        call, contents = self._collect(ALLGATHER)
        parts: list[bytes | bytearray] = [_LENGTH.pack(len(own)), own]
        for text in contents:
            parts += [_LENGTH.pack(len(text)), text]
        self._tell(DONE, call, *parts)
        return [value, *map(pickle.loads, contents)]

    def broadcast(self, value: Any) -> Any:
        """Send the value to all ranks and return it."""
        content = _dump(value)
        self._tell(BROADCAST, self._begin(), content)
        return value

    def _collect(self, kind: int) -> tuple[int, list[bytearray]]:
        call = self._begin()
        self._tell(kind, call)
        contents = []
        for rank in self._links:
            try:
                contents.append(self._expect(rank, kind, call, kind))
            except Gone:
                self._peer_gone(rank)
        return call, contents

    def _tell(self, kind: int, call: int, *parts: bytes | bytearray) -> None:
        for rank, link in self._links.items():
            try:
                link.send(kind, call, *parts)
            except Gone:
                self._peer_gone(rank)

    def _on_death(self, error: Gone) -> None:
        self._break(self._why)

    def _on_error(self) -> None:
        self._break(self._why)


class Follower(_SocketGroup):
    """Any rank other than 0."""

    def __init__(self, rank: int, link: Link, line: Link) -> None:
        super().__init__({0: link}, {0: line})
        self._own_rank = rank
        self._link = link

    def _rank(self) -> int:
        return self._own_rank

    def gather(self, value: Any) -> None:
        """Send the value to the chief. Returns once the chief has all values."""
        self._contribute(GATHER, value)

    def allgather(self, value: Any) -> list[Any]:
        """Return all values by rank."""
        content, values = memoryview(self._contribute(ALLGATHER, value)), []
        while content:
            (length,) = _LENGTH.unpack_from(content)
            values.append(pickle.loads(content[_LENGTH.size : _LENGTH.size + length]))
            content = content[_LENGTH.size + length :]
        return values

    def broadcast(self, value: Any) -> Any:
        """Return the chief's value."""
        call = self._begin()
        try:
            content = self._expect(0, BROADCAST, call, BROADCAST)
        except Gone:
            self._peer_gone(0)
        return pickle.loads(content)

    def _contribute(self, kind: int, value: Any) -> bytearray:
        content = _dump(value)
        call = self._begin()
        try:
            # Small values need no round trip. A large one waits for the chief's request: a chief that is in
            # a broadcast by mistake would block in `send` as this rank does, and neither would notice.
            if len(content) <= _EAGER_BYTES:
                self._link.send(kind, call, content)
            self._expect(0, kind, call, kind)
            if len(content) > _EAGER_BYTES:
                self._link.send(kind, call, content)
            return self._expect(0, DONE, call, kind)
        except Gone:
            self._peer_gone(0)

    def _on_death(self, error: Gone) -> None:
        # Data the chief sent before it exited can still be read. Only a vanished host leaves the connection
        # open.
        if error.silent:
            self._break(self._why)

    def _on_error(self) -> None:
        """Do nothing: the chief closes the data connection itself."""

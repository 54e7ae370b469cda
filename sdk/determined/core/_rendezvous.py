"""Connects the processes of a job, which may start in any order (core API spec, section 5)."""

import contextlib
import logging
import math
import os
import selectors
import shutil
import socket
import tempfile
import time
from collections.abc import Callable

from determined.core._collectives import Alone, Group
from determined.core._connections import (
    DATA,
    LIFE,
    Gone,
    Link,
    challenge,
    has_answered,
    introduce,
    welcome,
)
from determined.core._socket_collectives import ERROR, READY, Chief, Follower

JOIN_PATIENCE = "STEADFAST_JOIN_PATIENCE_S"
JOIN_PATIENCE_S = 1200.0
"""How long ranks wait for one another. Long, because a rank may prepare its data before it joins."""
FIRST_TOLD_S = 10.0
TOLD_EVERY_S = 60.0
GRACE_S = 10.0
"""How long to wait for a rank that died before all had joined, in case it restarts."""
_LOOK_S = 1.0
_HANDSHAKE_S = 5.0
_PAUSE_S = 0.05
_MOST_WAITING = 256
"""Most connections that have not introduced themselves. The oldest makes way: ranks do so at once."""

Address = tuple[str, int] | str
"""Host and port, or the path of a Unix socket."""

logger = logging.getLogger("determined.core")


_OF_A_JOB = ("TORCHELASTIC_RUN_ID", "MASTER_PORT", "PMIX_NAMESPACE", "HOROVOD_GLOO_RENDEZVOUS_PORT")
"""Variables that launchers set to the same value for all processes of a job, but differently per job."""


def secret() -> bytes:
    """Return a secret shared by the job's processes.

    Off cluster it only tells apart the jobs on this host.
    """
    token = os.environ.get("DET_SESSION_TOKEN")
    # All processes of a task have the same session token. Off cluster there is none.
    return (token or "\0".join(os.environ.get(name, "") for name in _OF_A_JOB)).encode()


def join_patience() -> float:
    """Return how many seconds ranks wait for one another. Raises ValueError if the setting is no such number.

    Nobody sees the death of a rank that was started by hand and never connected, so the user may say how
    long to wait for one. Launchers end all ranks when one dies.
    """
    text = os.environ.get(JOIN_PATIENCE) or str(JOIN_PATIENCE_S)
    try:
        patience_s = float(text)
    except ValueError:
        patience_s = 0.0
    if not 0 < patience_s < math.inf:
        raise ValueError(f"{JOIN_PATIENCE} must be a number of seconds greater than 0, not {text!r}")
    return patience_s


def listen(host: str, port: int) -> socket.socket:
    """Open the chief's listener. Raises RuntimeError if another process uses the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # All ranks may connect at once. One that finds the queue full tries again only after a second.
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise RuntimeError(
            f"the chief cannot listen on port {port}: {error.strerror}; another job on this host may use it, "
            "choose another one with INTER_TRAIN_PROCESS_COMM_PORT_1 on all ranks"
        ) from error


def lead(
    listener: socket.socket,
    size: int,
    patience_s: float | None = None,
    has_died: Callable[[int], bool] = lambda rank: False,
) -> Chief:
    """Wait for all other ranks. `has_died` says of one that did not connect whether it was started and ended.

    TimeoutError names missing ranks; RuntimeError names one that joined and died, or died before it joined.
    """
    links: dict[tuple[int, int], Link] = {}
    wanted = {(rank, channel) for rank in range(1, size) for channel in (DATA, LIFE)}
    deaths = _Deaths(links, wanted, has_died)
    try:
        with listener, contextlib.closing(_Arrivals(listener)) as arrivals:
            clock = _Clock(patience_s, lambda: f"waiting for {_named(wanted - _living(links))} of {size}")
            # A rank that joined and died is awaited again, because all must be connected at the same time.
            while _living(links) != wanted:
                for connection, nonce in arrivals.introduced(min(clock.left(), _LOOK_S)):
                    _admit(connection, nonce, size, links)
                deaths.look()
    except BaseException as error:
        _give_up(links, str(error) or type(error).__name__)
        raise
    # Only when all are there: a rank that began earlier would wait in its first collective for the others.
    for (_, channel), link in links.items():
        if channel == DATA:
            link.send(READY, 0)
    return Chief(size, _of(links, DATA), _of(links, LIFE))


class _Deaths:
    """Tracks ranks that died, whether they had joined or not."""

    def __init__(
        self,
        links: dict[tuple[int, int], Link],
        wanted: set[tuple[int, int]],
        has_died: Callable[[int], bool],
    ) -> None:
        self._links, self._wanted, self._has_died = links, wanted, has_died
        self._since: dict[int, float] = {}

    def look(self) -> None:
        """Raise RuntimeError if one of them does not return in time."""
        now = time.monotonic()
        dead = {rank for rank, _ in self._links.keys() - _living(self._links)}
        dead |= {rank for rank, _ in self._wanted - self._links.keys() if self._has_died(rank)}
        self._since = {rank: self._since.get(rank, now) for rank in dead}
        dead_ranks = [rank for rank, since in self._since.items() if now - since >= GRACE_S]
        if dead_ranks:
            missing = _named({place for place in self._wanted - self._links.keys() if place[0] not in dead})
            others = f"; {missing} had not come" if missing else ""
            raise RuntimeError(f"rank {min(dead_ranks)} of this job has died before all had joined{others}")


class _Arrivals:
    """Connections that have not introduced themselves yet. Anybody may open one, and none holds up others."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._listener.setblocking(False)
        self._waiting: dict[socket.socket, tuple[bytes, float]] = {}
        """What each was sent as a challenge, and until when it may answer."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)

    def introduced(self, timeout_s: float) -> list[tuple[socket.socket, bytes]]:
        """Return the connections that have introduced themselves, with their challenges."""
        ends = [end - time.monotonic() for _, end in self._waiting.values()]
        readable = {key.fileobj for key, _ in self._selector.select(max(0.0, min([timeout_s, *ends])))}
        self._accept()
        answered = []
        for connection, (nonce, end) in list(self._waiting.items()):
            try:
                if has_answered(connection):
                    self._forget(connection)
                    answered.append((connection, nonce))
                elif time.monotonic() >= end:
                    raise Gone(f"no introduction within {_HANDSHAKE_S:g} s")
            except Gone as error:
                self._refuse(connection, error)
        if not answered and readable & self._waiting.keys():
            # One that has sent a part of it would be found readable again and again.
            time.sleep(min(_PAUSE_S, timeout_s))
        return answered

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._challenge(self._listener.accept()[0])

    def _challenge(self, connection: socket.socket) -> None:
        # Also for MSG_DONTWAIT: on a socket with a timeout, Python itself waits before it asks the system.
        connection.setblocking(False)
        if len(self._waiting) >= _MOST_WAITING:
            self._refuse(next(iter(self._waiting)), "too many others have not introduced themselves")
        try:
            self._waiting[connection] = challenge(connection), time.monotonic() + _HANDSHAKE_S
        except OSError as error:
            self._refuse(connection, error)
            return
        self._selector.register(connection, selectors.EVENT_READ)

    def _forget(self, connection: socket.socket) -> None:
        if self._waiting.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.settimeout(_HANDSHAKE_S)

    def _refuse(self, connection: socket.socket, reason: object) -> None:
        self._forget(connection)
        _refuse(connection, reason)

    def close(self) -> None:
        """Close what has not introduced itself."""
        for connection in list(self._waiting):
            self._forget(connection)
            connection.close()
        self._selector.close()


def _refuse(connection: socket.socket, reason: object) -> None:
    # Not fatal: anybody may connect to an open port, such as a scanner or a rank of another job.
    logger.warning("a connection was refused: %s", reason)
    connection.close()


def _give_up(links: dict[tuple[int, int], Link], why: str) -> None:
    """Notify all waiting ranks, so that they need not run into their own timeout."""
    for (_, channel), link in links.items():
        if channel == DATA:
            with contextlib.suppress(Gone):
                link.send(ERROR, 0, why.encode())
        link.close()


def _admit(connection: socket.socket, nonce: bytes, size: int, links: dict[tuple[int, int], Link]) -> None:
    # A rank that died while others were still missing may join again.
    try:
        place = welcome(connection, nonce, size, _living(links), secret())
    except (Gone, OSError) as error:
        _refuse(connection, error)
        return
    if place in links:
        # A rank that died joins again over a new connection; the old one would count as its death.
        links[place].close()
    links[place] = Link(connection)


def _living(links: dict[tuple[int, int], Link]) -> set[tuple[int, int]]:
    return {place for place, link in links.items() if not link.is_dead()}


def _of(links: dict[tuple[int, int], Link], wanted: int) -> dict[int, Link]:
    return {rank: link for (rank, channel), link in sorted(links.items()) if channel == wanted}


def _named(places: set[tuple[int, int]]) -> str:
    ranks = ", ".join(map(str, sorted({rank for rank, _ in places})))
    return f"rank {ranks}" if ranks else ""


def follow(
    address: Address,
    rank: int,
    size: int,
    patience_s: float | None = None,
    has_died: Callable[[int], bool] = lambda rank: False,
) -> Follower:
    """Join the chief, which may not be listening yet. Raises TimeoutError if not all ranks join in time.

    Raises RuntimeError if the chief gives up, or was reachable and has died.
    """
    clock = _Clock(patience_s, lambda: f"rank {rank} waiting for the chief at {address} and all {size} ranks")
    reached, lost_at = False, None
    while True:
        clock.left()
        if lost_at is not None and time.monotonic() - lost_at >= GRACE_S:
            raise RuntimeError(f"rank 0 of this job, at {address}, has died before all had joined")
        made: list[Link] = []
        try:
            # Both channels or none: a chief that restarts in between would hold one half of this rank.
            for channel in (DATA, LIFE):
                made.append(_connect(address, rank, size, channel))  # noqa: PERF401 - closed if one fails
            _await_ready(made[0], clock)
            return Follower(rank, made[0], made[1])
        except BaseException as error:
            for link in made:
                link.close()
            if not isinstance(error, Gone | OSError):
                raise
            # Both connections had been accepted, so the chief was there, and is gone.
            if len(made) == 2:
                reached, lost_at = True, time.monotonic()
            elif has_died(0):
                lost_at = lost_at or time.monotonic()
            elif not reached:
                lost_at = None
            time.sleep(_PAUSE_S)


def _connect(address: Address, rank: int, size: int, channel: int) -> Link:
    if isinstance(address, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_HANDSHAKE_S)
        connection.connect(address)
    else:
        connection = socket.create_connection(address, timeout=_HANDSHAKE_S)
    try:
        introduce(connection, rank, size, channel, secret())
    except BaseException:
        connection.close()
        raise
    return Link(connection)


def _await_ready(link: Link, clock: "_Clock") -> None:
    while True:
        link.socket.settimeout(clock.left())
        try:
            # Only looks: to read with a timeout could take a part of a message and lose it.
            link.socket.recv(1, socket.MSG_PEEK)
            break
        except TimeoutError:
            continue
    link.socket.settimeout(None)
    kind, _, content = link.receive()
    if kind == ERROR:
        raise RuntimeError(content.decode())


def join_node(everybody: Group, node: int, rank: int, size: int, force_tcp: bool) -> Group:
    """Join the group of one node. Its first rank announces the listening address through `everybody`."""
    listener: socket.socket | None = None
    address: Address = ""
    if rank == 0 and size > 1:
        listener, address = _listen_here(force_tcp)
    # Through the large group, because the port or path is known only once the listener is open.
    chiefs = {n: at for n, local_rank, at in everybody.allgather((node, rank, address)) if local_rank == 0}
    if size == 1:
        return Alone()
    if listener is None:
        return follow(chiefs[node], rank, size)
    try:
        return lead(listener, size)
    finally:
        if isinstance(address, str):
            # All ranks of the node are connected, or have been told that there is no group.
            shutil.rmtree(os.path.dirname(address))


def _listen_here(force_tcp: bool) -> tuple[socket.socket, Address]:
    """Open a listener for this node's processes.

    Falls back to TCP if the path is too long for a Unix socket.
    """
    if not force_tcp:
        # In a directory that only this user can enter, so that no other user can connect.
        path = os.path.join(tempfile.mkdtemp(prefix="det-"), "ranks")
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(path)
            listener.listen(1024)
            return listener, path
        except OSError:
            listener.close()
            shutil.rmtree(os.path.dirname(path))
    listener = listen("127.0.0.1", 0)
    return listener, listener.getsockname()[:2]


class _Clock:
    """Counts down the timeout and periodically logs what is being waited for."""

    def __init__(self, patience_s: float | None, describe: Callable[[], str]) -> None:
        self._patience_s = join_patience() if patience_s is None else patience_s
        self._describe = describe
        self._end = time.monotonic() + self._patience_s
        self._next = time.monotonic() + FIRST_TOLD_S

    def left(self) -> float:
        """Return how many seconds to wait before checking again. Raises TimeoutError if none are left."""
        now = time.monotonic()
        if now >= self._end:
            raise TimeoutError(f"gave up after {self._patience_s:g} s ({JOIN_PATIENCE}): {self._describe()}")
        if now >= self._next:
            logger.warning("%s; giving up in %.0f s (%s)", self._describe(), self._end - now, JOIN_PATIENCE)
            self._next = now + TOLD_EVERY_S
        return max(min(self._end, self._next) - now, 0.01)

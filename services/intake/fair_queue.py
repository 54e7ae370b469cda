"""The queue at the edge, by sender: one message of each in turn, so that no sender slows the others down."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

M = TypeVar("M")
HELD = 64 * 1024 * 1024
"""Maximum number of waiting bytes. Messages beyond it are not accepted, and their senders retry."""
HELD_EACH = HELD // 8
"""The same per sender: as large as one message may be."""


class Turns(Generic[M]):
    """Messages in order for each sender, with senders taking turns."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[tuple[M, int]]] = {}
        """By sender; the first one is next."""
        self._bytes: dict[str, int] = {}
        self._all = 0
        self._held: dict[str, deque[tuple[M, int]]] = {}
        """Messages of senders that are on hold."""
        self._shut: set[str] = set()
        """Senders on hold whose new messages are rejected as well."""

    @property
    def bytes(self) -> int:
        """Total size of what waits."""
        return self._all

    def put(self, sender: str, message: M, size: int) -> bool:
        """Queue a message. Returns False if there is no room for it."""
        held = self._bytes.get(sender, 0) + size
        if sender in self._shut or held > HELD_EACH or self._all + size > HELD:
            return False
        mine = self._held.get(sender)
        if mine is None:
            mine = self._waiting.setdefault(sender, deque())
        mine.append((message, size))
        self._bytes[sender] = held
        self._all += size
        return True

    def take(self) -> M | None:
        """The next message. Its sender's next one comes after those of all other waiting senders."""
        sender = next(iter(self._waiting), None)
        if sender is None:
            return None
        mine = self._waiting.pop(sender)
        message, size = mine.popleft()
        self._all -= size
        self._bytes[sender] -= size
        if mine:
            self._waiting[sender] = mine
        else:
            del self._bytes[sender]
        return message

    def hold(self, sender: str) -> None:
        """Put a sender on hold: its messages wait until it is released."""
        self._held[sender] = self._waiting.pop(sender, deque())

    def let_go(self, sender: str) -> None:
        """Release a sender that is on hold or shut."""
        self._shut.discard(sender)
        mine = self._held.pop(sender, None)
        if mine:
            self._waiting[sender] = mine

    def shut(self, sender: str) -> None:
        """Drop the waiting messages of a sender on hold, and reject new ones until it is released."""
        self._shut.add(sender)
        self._held[sender].clear()
        self._all -= self._bytes.pop(sender, 0)


def sender_of(subject: str) -> str:
    """The sender of a message: a trial or a worker. A worker's log lines queue separately from its facts."""
    stream, _, rest = subject.partition(".")
    first, _, more = rest.partition(".")
    if stream == "witness":
        return f"{first} {more.partition('.')[0]}"
    if stream == "ask":
        return f"lines {more.partition('.')[0]}"
    if stream == "orders":
        return f"worker {more.partition('.')[0]}"
    return f"trial {first}"

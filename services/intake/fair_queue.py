"""What waits at the edge, by sender: one message of each in turn, so that none slows the others down."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

M = TypeVar("M")
HELD = 64 * 1024 * 1024
"""Bytes that may wait in all; what comes beyond them is not taken, and its sender says it again."""
HELD_EACH = HELD // 8
"""Likewise, of one sender: as large as a message may be."""


class Turns(Generic[M]):
    """Messages in the order of each sender, and of senders in turn."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[tuple[M, int]]] = {}
        """By sender; the first one is next."""
        self._bytes: dict[str, int] = {}
        self._all = 0
        self._held: dict[str, deque[tuple[M, int]]] = {}
        """Of senders of whom nothing is taken just now."""
        self._shut: set[str] = set()
        """Those of whom nothing is let in either."""

    @property
    def bytes(self) -> int:
        """What waits, of all senders."""
        return self._all

    def put(self, sender: str, message: M, size: int) -> bool:
        """Have a message wait; False when there is no room for it."""
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
        """The next message; its sender's following one comes after those of all others who wait."""
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
        """Take nothing of a sender, and let it wait, until it is let go."""
        self._held[sender] = self._waiting.pop(sender, deque())

    def let_go(self, sender: str) -> None:
        """What a held sender said is taken again, and let in again."""
        self._shut.discard(sender)
        mine = self._held.pop(sender, None)
        if mine:
            self._waiting[sender] = mine

    def shut(self, sender: str) -> None:
        """Of a held sender forget what waits, and let in no more until it is let go."""
        self._shut.add(sender)
        self._held[sender].clear()
        self._all -= self._bytes.pop(sender, 0)


def sender_of(subject: str) -> str:
    """Who says something on a subject: a trial, or a worker, whose lines keep no facts of its own waiting."""
    stream, _, rest = subject.partition(".")
    first, _, more = rest.partition(".")
    if stream == "witness":
        return f"{first} {more.partition('.')[0]}"
    if stream == "ask":
        return f"lines {more.partition('.')[0]}"
    if stream == "orders":
        return f"worker {more.partition('.')[0]}"
    return f"trial {first}"

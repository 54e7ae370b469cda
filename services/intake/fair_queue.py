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

    def put(self, sender: str, message: M, size: int) -> bool:
        """Have a message wait; False when there is no room for it."""
        held = self._bytes.get(sender, 0) + size
        if held > HELD_EACH or self._all + size > HELD:
            return False
        self._waiting.setdefault(sender, deque()).append((message, size))
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


def sender_of(subject: str) -> str:
    """Who says something on a subject: a trial, a worker, or the task whose log it is."""
    stream, _, rest = subject.partition(".")
    first, _, more = rest.partition(".")
    if stream == "witness":
        return f"{first} {more.partition('.')[0]}"
    if stream == "orders":
        return f"worker {more.partition('.')[0]}"
    return f"trial {first}" if stream == "reports" else f"{stream} {first}"

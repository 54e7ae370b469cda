"""The queue at the edge, by sender: one message of each in turn, so that no sender slows the others down."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

M = TypeVar("M")
MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Maximum number of waiting bytes. Messages beyond it are not accepted, and their senders retry."""
MAX_QUEUED_BYTES_EACH = MAX_QUEUED_BYTES // 8
"""The same per sender: as large as one message may be."""


class FairQueue(Generic[M]):
    """Messages in order for each sender, with senders taking turns."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[tuple[M, int]]] = {}
        """By sender; the first one is next."""
        self._bytes: dict[str, int] = {}
        self._total_bytes = 0
        self._on_hold: dict[str, deque[tuple[M, int]]] = {}
        """Messages of senders that are on hold."""
        self._shut: set[str] = set()
        """Senders on hold whose new messages are rejected as well."""

    @property
    def bytes(self) -> int:
        """Total size of what waits."""
        return self._total_bytes

    def put(self, sender: str, message: M, size: int) -> bool:
        """Queue a message. Returns False if there is no room for it."""
        queued_bytes = self._bytes.get(sender, 0) + size
        if (
            sender in self._shut
            or queued_bytes > MAX_QUEUED_BYTES_EACH
            or self._total_bytes + size > MAX_QUEUED_BYTES
        ):
            return False
        messages = self._on_hold.get(sender)
        if messages is None:
            messages = self._waiting.setdefault(sender, deque())
        messages.append((message, size))
        self._bytes[sender] = queued_bytes
        self._total_bytes += size
        return True

    def take(self) -> M | None:
        """The next message. Its sender's next one comes after those of all other waiting senders."""
        sender = next(iter(self._waiting), None)
        if sender is None:
            return None
        messages = self._waiting.pop(sender)
        message, size = messages.popleft()
        self._total_bytes -= size
        self._bytes[sender] -= size
        if messages:
            # At the end of the dictionary, which is the order of turns.
            self._waiting[sender] = messages
        else:
            del self._bytes[sender]
        return message

    def hold(self, sender: str) -> None:
        """Put a sender on hold: its messages wait until it is released."""
        self._on_hold[sender] = self._waiting.pop(sender, deque())

    def release(self, sender: str) -> None:
        """Release a sender that is on hold or shut."""
        self._shut.discard(sender)
        messages = self._on_hold.pop(sender, None)
        if messages:
            self._waiting[sender] = messages

    def shut(self, sender: str) -> None:
        """Drop the waiting messages of a sender on hold, and reject new ones until it is released."""
        self._shut.add(sender)
        self._on_hold[sender].clear()
        self._total_bytes -= self._bytes.pop(sender, 0)


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

"""The log as services see it: append, append a fenced batch, read on from a position.

Two implementations, `log_jetstream` and the in-memory twin `log_memory`, pass one conformance suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from services.kit.lag import Behind

BATCH_LIMIT = 1000
"""Messages that the broker takes in one atomic batch."""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A message as it lies in the log."""

    subject: str
    position: int
    """Sequence in its stream, from 1."""
    body: bytes
    trace: str = ""
    """The span that it was written in; see `services.kit.trace_context`."""


class Mark(msgspec.Struct, frozen=True):
    """A message that was read of a stream; where another one lies in its place, the log is another one."""

    position: int
    at: int
    """When the broker stored it, in nanoseconds since 1970."""


class Draft(msgspec.Struct, frozen=True):
    """A message to append."""

    subject: str
    body: bytes
    id: str
    """De-duplication id: the same id again within two minutes is not stored again."""
    trace: str = ""
    """The span that it is written in; see `services.kit.trace_context`."""


class Fence(msgspec.Struct, frozen=True):
    """The claim that nothing newer than `last` lies on `subject`; 0: nothing at all."""

    subject: str
    last: int


class Batch(msgspec.Struct, frozen=True):
    """Messages that arrived together, in order."""

    messages: Sequence[Stored]
    caught_up: bool
    """No further message was in the stream when the last of these was sent."""


class LogError(Exception):
    """Something went wrong with the log."""


class FenceLost(LogError):
    """Somebody else has decided since: the whole batch was refused, nothing of it is stored."""


class NotConfirmed(LogError):
    """The log did not say that it has a message."""


class OutcomeUnknown(NotConfirmed):
    """The broker did not answer: the messages may be stored or not. Read the log to know."""


class NotStored(NotConfirmed):
    """The broker refused, and nothing is stored: no space, no permission, too large. The text says which."""


class NeverStored(NotStored):
    """It is refused for good: saying it again changes nothing."""


class TooLarge(NeverStored):
    """No broker of this configuration will ever take it."""


class LogTruncated(LogError):
    """The log ends before a position that was folded already, or has a hole: it lost what it acknowledged."""


class BadSegment(LogTruncated):
    """A segment of the archive is missing, damaged, or not what the log vouches for; the text names it."""


class Gone(LogTruncated):
    """What follows the position is not in the stream any more; it may lie in the archive."""


class Feed(Protocol):
    """A running read."""

    @property
    def behind(self) -> Behind:
        """What is known to be in the stream; done is what was handed out before one asked for more."""

    async def batch(self) -> Batch:
        """Wait for the next messages, or for the news that there are none yet (an empty batch).

        Raises `LogTruncated` when the log lost messages.
        """


class Log(Protocol):
    """An ordered, durable record of messages in streams."""

    async def append(self, draft: Draft) -> int:
        """Store one message; returns its position. A repeat of an id returns the first position.

        Tries again while the broker is away or has no space; raises `OutcomeUnknown` or `NotStored` after
        half a minute, and `NeverStored` at once.
        """

    async def append_batch(self, drafts: Sequence[Draft], *, fence: Fence) -> int:
        """Store all or nothing; returns the position of the last message.

        The first draft must be on the fence's subject. One alone is an ordinary message, no batch, and may be
        on any subject. Raises `FenceLost`, `NotStored` or `OutcomeUnknown`, and ValueError for more than
        `BATCH_LIMIT` drafts.
        """

    def read(
        self, stream: str, *, after: int, subjects: Sequence[str] = ()
    ) -> AbstractAsyncContextManager[Feed]:
        """Read on behind position `after`; `subjects` are filters with NATS wildcards, none means all.

        Entering raises `LogTruncated` when `after` lies beyond the end.
        """

    async def last(self, subject: str) -> Stored | None:
        """The newest message on one subject of its stream; None when there is none."""

    async def bounds(self, stream: str) -> tuple[int, int]:
        """First and last position of a stream; (1, 0) when it is empty and always was."""

    async def forget(self, stream: str, through: int) -> None:
        """Let go of everything in a stream up to a position; raises `OutcomeUnknown`. Not of CONTROL."""

"""The log as services see it: append a message, append a fenced batch, read from a position.

The two implementations, `log_jetstream` and the in-memory `log_memory`, pass the same conformance suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from services.kit.lag import Lag

BATCH_LIMIT = 1000
"""Maximum number of messages that the broker accepts in one atomic batch."""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A message as stored in the log."""

    subject: str
    position: int
    """Sequence number in its stream, from 1."""
    body: bytes
    trace: str = ""
    """The span in which it was written; see `services.kit.trace_context`."""


class Mark(msgspec.Struct, frozen=True):
    """A message read from a stream. If another is found in its place, this is a different log."""

    position: int
    at: int
    """When the broker stored it, in nanoseconds since 1970."""


class Draft(msgspec.Struct, frozen=True):
    """A message to append."""

    subject: str
    body: bytes
    id: str
    """Deduplication id: the same id within two minutes is not stored again."""
    trace: str = ""
    """The span in which it is written; see `services.kit.trace_context`."""


class Fence(msgspec.Struct, frozen=True):
    """The condition that `subject` has no message newer than `last`; 0 means no message at all."""

    subject: str
    last: int


class Batch(msgspec.Struct, frozen=True):
    """Messages that arrived together, in order."""

    messages: Sequence[Stored]
    caught_up: bool
    """Whether the stream had no further message when the last of these was sent.

    Of several brokers, the one that is read from may be behind: `Log.end` says where a stream ends.
    """


class LogError(Exception):
    """Base class of log errors."""


class FenceLost(LogError):
    """Another replica has decided in the meantime. The whole batch was refused; nothing is stored."""


class NotConfirmed(LogError):
    """The log did not confirm that it has stored a message."""


class OutcomeUnknown(NotConfirmed):
    """The broker did not answer, so the messages may or may not be stored. Read the log to find out."""


class NotStored(NotConfirmed):
    """The broker refused and stored nothing: no space, no permission, or too large. The text says which."""


class NeverStored(NotStored):
    """Refused permanently: retrying cannot succeed."""


class TooLarge(NeverStored):
    """Larger than a broker with this configuration ever accepts."""


class LogTruncated(LogError):
    """The log ends before a folded position, or has a hole: it has lost acknowledged messages."""


class BadSegment(LogTruncated):
    """An archive segment is missing, damaged, or not what the log refers to; the text names it."""


class PositionRemoved(LogTruncated):
    """What follows the position is no longer in the stream; it may be in the archive."""


class Feed(Protocol):
    """A running read."""

    @property
    def lag(self) -> Lag:
        """Progress: messages known in the stream, and those delivered before the latest `batch` call."""

    @property
    def position(self) -> int:
        """Position up to which everything on its subjects was delivered by the previous `batch` calls."""

    async def batch(self) -> Batch:
        """Wait for the next messages, or for an empty batch that says there are none yet.

        Raises `LogTruncated` if the log lost messages.
        """


class Log(Protocol):
    """An ordered, durable record of messages in streams."""

    async def append(self, draft: Draft) -> int:
        """Store one message and return its position. Repeating an id returns the first position.

        Retries while the broker is away or out of space. Raises `OutcomeUnknown` or `NotStored` after half a
        minute, and `NeverStored` at once.
        """

    async def append_batch(self, drafts: Sequence[Draft], *, fence: Fence) -> int:
        """Store all messages or none. Returns the position of the last.

        The first draft must be on the fence's subject. A single draft is an ordinary message and may be on
        any subject. Raises `FenceLost`, `NotStored` or `OutcomeUnknown`, and ValueError for more than
        `BATCH_LIMIT` drafts.
        """

    def read(
        self, stream: str, *, after: int, subjects: Sequence[str] = ()
    ) -> AbstractAsyncContextManager[Feed]:
        """Read from behind position `after`. `subjects` are filters with NATS wildcards; none means all.

        Entering raises `LogTruncated` if `after` lies beyond the end.
        """

    async def last(self, subject: str) -> Stored | None:
        """Return the newest message on a subject of its stream, or None."""

    async def end(self, stream: str, *, after: int, subjects: Sequence[str] = ()) -> int:
        """Return the position up to which to read for all that is behind `after` now; `after` if nothing is.

        `subjects` are filters as for `read`. Waits for the broker.
        """

    async def bounds(self, stream: str) -> tuple[int, int]:
        """Return the first and last position of a stream; (1, 0) if it was always empty."""

    async def forget(self, stream: str, through: int) -> None:
        """Remove everything in a stream up to a position. Raises `OutcomeUnknown`. Not for CONTROL."""

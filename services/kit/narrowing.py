"""Finds the event because of which a portion of the log cannot be processed or saved.

A portion holds many events, and what is saved together holds many portions, so a failure does not say which
event is to blame. The state is therefore loaded again, and the log is folded from there in smaller portions,
each saved before the next is folded, until a portion of a single event fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.kit.log import Stored
from services.kit.standstill import Failed

SIZES = (256, 16, 1)
"""Events per portion in each attempt. A portion that fails is the only one that the next attempt repeats."""


class PortionFailed(Exception):
    """What was folded cannot be processed or saved, and it is not known because of which event."""


class Narrowing:
    """Limits the size of an owner's portions while an event that fails is being looked for."""

    def __init__(self) -> None:
        self._attempt = 0
        self._until: dict[str, int] = {}
        """Per stream, the position up to which portions have to be small."""
        self._unsaved: list[tuple[str, Stored]] = []
        """What is folded but not yet saved."""

    @property
    def limit(self) -> int:
        """Number of events per portion; 0 if it does not matter."""
        return SIZES[self._attempt - 1] if self._attempt else 0

    def note(self, stream: str, messages: Sequence[Stored]) -> None:
        """Remember what is folded next, once everything before it is saved, or what just failed."""
        self._unsaved = [(stream, message) for message in messages]

    def on_failure(self, error: str, reached: Mapping[str, int]) -> Failed | None:
        """Record a failure, with all streams folded up to `reached`.

        Returns the event that caused it; None if the next attempt has to find it.
        """
        for stream, position in reached.items():
            # Up to the furthest ever reached: after a reload the position is back at the last save, and the
            # failure lies ahead.
            self._until[stream] = max(position, self._until.get(stream, 0))
        for stream, message in self._unsaved:
            self._until[stream] = max(message.position, self._until.get(stream, 0))
        blamed, self._unsaved = self._unsaved, []
        # Only a portion of one event proves that this event is the cause.
        if self.limit == 1 and blamed:
            ((stream, message),) = blamed
            return Failed(stream, message.position, message.subject, error)
        self._attempt = min(self._attempt + 1, len(SIZES))
        return None

    def on_progress(self, saved: Mapping[str, int]) -> None:
        """Record what is saved. The limit ends once that covers what failed."""
        if self._attempt and all(saved.get(stream, 0) >= at for stream, at in self._until.items()):
            self.end()

    def end(self) -> None:
        """Remove the limit."""
        self._attempt, self._until, self._unsaved = 0, {}, []

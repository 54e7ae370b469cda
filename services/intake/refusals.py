"""Says in the intake's own log what it refused. A sender who is refused without end does not fill it."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from services.kit.bounded_dict import BoundedDict
from services.kit.log import Stored

SAID_EVERY_S = 10.0
"""How often a refusal of one sender is written, in seconds; the next line says how many were left out."""
REMEMBERED = 20_000
"""Number of senders that are remembered, the most recent ones."""

log = structlog.get_logger()


class Refusals:
    """Writes one line per sender and interval."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._senders: BoundedDict[str, tuple[float, int]] = BoundedDict(REMEMBERED)
        """By subject: when a line was last written, and how many refusals came since."""

    def say(self, message: Stored, reason: str) -> None:
        """Say that a message was not admitted, unless its sender was written about a moment ago."""
        subject, at = message.subject[:200], self._clock()
        said_at, left_out = self._senders.get(subject, (at - SAID_EVERY_S, 0))
        # A clock that is set back must not silence it for good.
        if 0 <= at - said_at < SAID_EVERY_S:
            self._senders[subject] = said_at, left_out + 1
            return
        self._senders[subject] = at, 0
        log.warning(
            "fact.not_admitted", on=subject, position=message.position, reason=reason, left_out=left_out
        )

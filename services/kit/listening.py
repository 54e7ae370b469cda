"""Tracks since when a process has listened without a gap. Silence before that does not count.

Signs of life are not stored, and while the broker or this process is down, none are received. A process that
reports silence therefore starts counting at the first look at which this replica leads, the broker answers,
and everything then in the log and the inbox is folded.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit.log import NotConfirmed
from services.kit.rules import Call

if TYPE_CHECKING:
    from services.kit.parts import Parts


class ListeningPeriod:
    """State of one watch.

    Times are seconds of a clock that keeps running while the host sleeps (`since_boot`).
    """

    def __init__(self, gap_s: float, now: float) -> None:
        """A gap of more than `gap_s` between two looks means that this process stalled or its host slept."""
        self._gap_s = gap_s
        self._checked_at = now
        self.since = now

    def restart(self, now: float) -> None:
        """Start again: no one was listening until now, so earlier silence does not count."""
        self.since = now

    def record_check(self, now: float) -> None:
        """Record a look at who is silent. Call it before reporting anyone."""
        if now - self._checked_at > self._gap_s:
            self.since = now
        self._checked_at = now


async def report_while_leading(
    parts: Parts,
    *,
    every_s: float,
    within_s: float,
    restart: Callable[[Any], None],
    reports: Callable[[Any], Iterable[tuple[str, Any]]],
) -> None:
    """Periodically check for silence and command what is to be reported, until cancelled.

    Args:
        parts: Of the process whose log decides.
        every_s: Seconds between two looks.
        within_s: Seconds that a report, and reading everything before a look, may take. Anything that takes
            longer is about the past.
        restart: Called with the state at a look at which this replica does not lead or has not read
            everything.
        reports: Returns commands for a state, each with its call id.
    """
    while True:
        await asyncio.sleep(every_s)
        if parts.is_leader() and await _is_caught_up(parts, within_s):
            await asyncio.gather(
                *(_command(parts, *report, within_s) for report in reports(parts.runner.state))
            )
        else:
            restart(parts.runner.state)


async def _command(parts: Parts, id: str, report: Any, within_s: float) -> None:
    with contextlib.suppress(Refused):
        await parts.runner.command(report, Call(id, time.time()), within_s)


async def _is_caught_up(parts: Parts, within_s: float) -> bool:
    """Whether the broker answers, and everything then in log and inbox is folded in time."""
    try:
        # The inbox first: what it held at that moment is in CONTROL by the time CONTROL's end is asked for.
        for stream in (subjects.WITNESS, subjects.CONTROL):
            _, end = await parts.journal.bounds(stream)
            await parts.runner.wait_for_position(end, within_s, stream)
    except (NotConfirmed, Refused):
        return False
    return True

"""Since when a process has listened without a gap: silence counts for nothing before.

Signs of life are not stored. With the broker away, or this process, nobody hears anybody; so whoever reports
silence counts anew from the first look at which this replica leads, the broker answers, and all that the log
and the inbox held by then is folded.
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


class Listening:
    """Of one watch; times are seconds of a clock that goes on while its host sleeps (`since_boot`)."""

    def __init__(self, gap_s: float, now: float) -> None:
        """Between two looks there may lie `gap_s`; after more this process stood still, or its host slept."""
        self._gap_s = gap_s
        self._looked_at = now
        self.since = now

    def begin_again(self, now: float) -> None:
        """Nobody listened until now: whoever was not heard has not been silent."""
        self.since = now

    def look(self, now: float) -> None:
        """Note a look at who is silent, before anybody is blamed for it."""
        if now - self._looked_at > self._gap_s:
            self.since = now
        self._looked_at = now


async def report_while_leading(
    parts: Parts,
    *,
    every_s: float,
    within_s: float,
    begin_again: Callable[[Any], None],
    reports: Callable[[Any], Iterable[tuple[str, Any]]],
) -> None:
    """Look every so often at who is silent, and command what is reported, until cancelled.

    Args:
        parts: Of the process whose log decides.
        every_s: Seconds between two looks.
        within_s: Seconds that a report, and reading all that there is before a look, may take: what takes
            longer is about the past.
        begin_again: Called with the state at a look at which this replica does not lead, or has not read all.
        reports: Commands by the state, each with the id of its call.
    """
    while True:
        await asyncio.sleep(every_s)
        if parts.leading() and await _has_read_all(parts, within_s):
            await asyncio.gather(*(_command(parts, *one, within_s) for one in reports(parts.runner.state)))
        else:
            begin_again(parts.runner.state)


async def _command(parts: Parts, id: str, report: Any, within_s: float) -> None:
    with contextlib.suppress(Refused):
        await parts.runner.command(report, Call(id, time.time()), within_s)


async def _has_read_all(parts: Parts, within_s: float) -> bool:
    """Whether the broker answers, and what the log and the inbox held when it did is folded in that time."""
    try:
        for stream in (subjects.WITNESS, subjects.CONTROL):
            _, end = await parts.journal.bounds(stream)
            await parts.runner.reach(end, within_s, stream)
    except (NotConfirmed, Refused):
        return False
    return True

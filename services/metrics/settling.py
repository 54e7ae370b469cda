"""Finds out when no report of an ended trial is still to come.

Reports are stored before a script may end, so what REPORTS holds once the trial's end has been
read holds all of them. Only the stream's end at that time is asked for; the rest is the fold's.
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit.log import OutcomeUnknown
from services.kit.parts import Parts
from services.kit.rules import Call
from services.metrics.commands import Settle

LOOK_EVERY_S = 0.1
AT_ONCE = 500
PATIENCE_S = 5.0


async def settle_ended_trials(parts: Parts) -> None:
    """Settle trials for as long as this replica leads."""
    await parts.runner.ready.wait()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        ended = tuple(islice(parts.runner.state.ended, AT_ONCE))
        if not ended or not parts.leading():
            continue
        try:
            first, last = await parts.journal.bounds(subjects.REPORTS)
            # Nothing is to come of a stream whose messages have all grown too old.
            if first <= last:
                await parts.runner.reach(last, stream=subjects.REPORTS)
            await parts.runner.command(Settle(ended), Call(f"settle-{ended[0]}", time.time()), PATIENCE_S)
        except (Refused, OutcomeUnknown):
            continue

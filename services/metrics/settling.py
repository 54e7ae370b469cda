"""Finds out when no further report of an ended trial can arrive.

A script's reports are stored before it may end. So by the time its end has been read, REPORTS holds all of
them. This module only asks for the stream's end at that time; the fold does the rest.
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit.log import OutcomeUnknown
from services.kit.parts import Parts, settings_of
from services.kit.rules import Call
from services.metrics.commands import Settle
from services.metrics.domain import State, shard_of_trial
from services.metrics.settings import MetricsSettings

POLL_EVERY_S = 0.1
AT_ONCE = 500
COMMAND_TIMEOUT_S = 5.0


async def settle_ended_trials(parts: Parts) -> None:
    """Settle ended trials of this shard while this replica leads."""
    shard = settings_of(parts, MetricsSettings).metrics_shard
    await parts.runner.ready.wait()
    while True:
        await asyncio.sleep(POLL_EVERY_S)
        state: State = parts.runner.state
        ended = tuple(islice((id for id in state.ended if shard_of_trial(state, id) == shard), AT_ONCE))
        if not ended or not parts.is_leader():
            continue
        try:
            # After the ended trials are chosen: the end of the stream must be later than every one of their
            # ends.
            first, last = await parts.journal.bounds(subjects.REPORTS)
            # A stream whose messages have all expired has nothing left to fold.
            if first <= last:
                await parts.runner.wait_for_position(last, stream=subjects.REPORTS)
            await parts.runner.command(
                Settle(ended), Call(f"settle-{ended[0]}", time.time()), COMMAND_TIMEOUT_S
            )
        except (Refused, OutcomeUnknown):
            continue

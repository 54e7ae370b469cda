"""Single reports and parts of them, as the metrics service has them."""

from __future__ import annotations

import msgspec

from det_contracts import queries
from services.catalogue.peers import Peers, Report


async def report_count(peers: Peers, trial_id: int, group: str | None) -> int:
    """How many reports of a trial count, without profiles unless named; `Refused` while metrics is away."""
    query = queries.ReportWindow(trial_id=trial_id, group=group, profiled=False)
    return int((await peers.ask(query))["total"])


async def report_window(peers: Peers, trial_id: int, group: str | None, start: int, end: int) -> list[Report]:
    """Reports by their places in order of steps, from `start` to `end`, exclusive; profiles as counted."""
    found: list[Report] = []
    while start < end:
        query = queries.ReportWindow(
            trial_id=trial_id, group=group, profiled=False, offset=start, limit=end - start
        )
        rows = msgspec.convert((await peers.ask(query))["rows"], list[Report])
        if not rows:
            break
        found += rows
        start += len(rows)
    return found


async def report_at(peers: Peers, trial_id: int, run: int, group: str, steps: int) -> Report | None:
    """What a run reported at one step; None when it reported nothing there."""
    before = (trial_id, run, steps - 1, 2**62)
    query = queries.Reports(trial_ids=[trial_id], group=group, after=before, limit=1)
    found = msgspec.convert((await peers.ask(query))["rows"], list[Report])
    row = found[0] if found else None
    return row if row is not None and (row.run, row.steps_completed) == (run, steps) else None

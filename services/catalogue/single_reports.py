"""Queries for single reports, or parts of them, to the metrics service."""

from __future__ import annotations

import msgspec

from det_contracts import queries
from services.catalogue.peers import Peers, Report


async def report_count(peers: Peers, trial_id: int, group: str | None) -> int:
    """The number of a trial's reports, without profiles unless `group` names one.

    Raises `Refused` while the metrics service is unavailable.
    """
    query = queries.ReportWindow(trial_id=trial_id, group=group, profiled=False)
    return int((await peers.query(query))["total"])


async def report_window(peers: Peers, trial_id: int, group: str | None, start: int, end: int) -> list[Report]:
    """Reports from place `start` to `end`, exclusive, ordered by steps and counted as in `report_count`."""
    reports: list[Report] = []
    while start < end:
        query = queries.ReportWindow(
            trial_id=trial_id, group=group, profiled=False, offset=start, limit=end - start
        )
        rows = msgspec.convert((await peers.query(query))["rows"], list[Report])
        if not rows:
            break
        reports += rows
        start += len(rows)
    return reports


async def report_at(peers: Peers, trial_id: int, run: int, group: str, steps: int) -> Report | None:
    """A run's report at one step; None if there is none."""
    before = (trial_id, run, steps - 1, 2**62)
    query = queries.Reports(trial_ids=[trial_id], group=group, after=before, limit=1)
    rows = msgspec.convert((await peers.query(query))["rows"], list[Report])
    row = rows[0] if rows else None
    return row if row is not None and (row.run, row.steps_completed) == (run, steps) else None

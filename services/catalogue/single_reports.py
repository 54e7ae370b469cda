"""Queries for single reports, or parts of them, to the metrics service."""

from __future__ import annotations

import msgspec

from det_contracts import queries
from det_contracts.problems import Refused, invalid
from services.catalogue.peers import Peers, Report

MAX_ANSWERS = 16
"""Answers of the metrics service, of some 2 MiB each, that are collected for one answer of the gateway."""


async def report_count(peers: Peers, trial_id: int, group: str | None) -> int:
    """The number of a trial's reports, without profiles unless `group` names one.

    Raises `Refused` while the metrics service is unavailable.
    """
    query = queries.ReportWindow(trial_id=trial_id, group=group, profiled=False)
    return int((await peers.query(query))["total"])


async def report_window(peers: Peers, trial_id: int, group: str | None, start: int, end: int) -> list[Report]:
    """Reports from place `start` to `end`, exclusive, ordered by steps and counted as in `report_count`.

    Raises `Refused` (400) if they are too large for one answer: a trial may have gigabytes of them.
    """
    reports: list[Report] = []
    answers = 0
    while start < end:
        if answers == MAX_ANSWERS:
            raise too_many(trial_id, len(reports))
        answers += 1
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


def too_many(trial_id: int, fitting: int) -> Refused:
    """Return the refusal of more reports than fit into one answer, of which so many would."""
    return invalid(
        f"what trial {trial_id} has reported is too large for one answer: ask for fewer workloads at a time "
        f"with limit and offset (about {fitting:,} fit), or read /api/v1/trials/metrics/trial_metrics"
    )

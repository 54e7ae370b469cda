"""A trial's reports and checkpoints, in the requested order (REST spec, section 4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec

from det_contracts.problems import invalid
from services.catalogue.domain import Checkpoint, Trial
from services.catalogue.peers import Report
from services.catalogue.single_reports import report_count, report_window, too_many
from services.kit import paging
from services.kit.paging import Span
from services.rest_requests.api_call import UserCall
from services.rest_routes.present.metrics import VALIDATION, checkpoint_workload, workload
from services.web.query import Flag, Grouped, Paged, enum_value

FILTERS = ("ALL", "CHECKPOINT", "VALIDATION", "CHECKPOINT_OR_VALIDATION")
BATCHES = ("", "batches", "total_batches", "totalBatches")
MAX_BYTES = 32 * 1024 * 1024
"""Size as JSON of the reports in one answer that is ordered by a metric."""
MAX_SORTED = 500_000
"""Number of reports that are ordered by a metric, which is done here."""
Workload = dict[str, object]


class WorkloadsQuery(Paged, Grouped):
    """Query parameters that select and sort workloads."""

    filter: Annotated[str, enum_value("FILTER_OPTION_", FILTERS)] = "ALL"
    include_batch_metrics: Flag = False
    sort_key: str = ""
    remove_deleted_checkpoints: Flag = False


async def workloads(
    call: UserCall, trial: Trial, query: WorkloadsQuery
) -> tuple[list[Workload], dict[str, int]]:
    """The requested page of workloads, and its pagination."""
    kinds = query.filter
    checkpoints = [] if kinds == "VALIDATION" else _checkpoints(call, trial, query)
    group = VALIDATION if kinds != "ALL" else query.metric_group or None
    # Metrics are not sorted in the tables, so all of them are read. Batches are, and only the page is read.
    if query.sort_key not in BATCHES:
        return await _by_metric(call, trial, query, [] if kinds == "CHECKPOINT" else [group], checkpoints)
    count = 0 if kinds == "CHECKPOINT" else await report_count(call.peers, trial.id, group)
    span = paging.span(query.window, count + len(checkpoints))
    return await _by_batches(call, trial, query, group, count, checkpoints, span), span.pagination


def _checkpoints(call: UserCall, trial: Trial, query: WorkloadsQuery) -> list[Checkpoint]:
    checkpoints = (
        call.catalogue.checkpoint(uuid) for uuid in call.catalogue.state.checkpoints_of.ids(trial.id)
    )
    hidden = "DELETED" if query.remove_deleted_checkpoints else None
    return sorted(
        (checkpoint for checkpoint in checkpoints if checkpoint and checkpoint.state != hidden),
        key=lambda checkpoint: checkpoint.steps,
    )


async def _by_batches(
    call: UserCall,
    trial: Trial,
    query: WorkloadsQuery,
    group: str | None,
    count: int,
    checkpoints: list[Checkpoint],
    span: Span,
) -> list[Workload]:
    """A page ordered by batches; a checkpoint comes after the reports of the same batch.

    Only the page itself is read, plus as many reports before it as there are checkpoints, since those may
    push reports further back.
    """
    start, end = span.start, span.end
    if span.window.descending:
        start, end = span.total - span.end, span.total - span.start
    before = max(0, start - len(checkpoints))
    reports = await report_window(call.peers, trial.id, group, before, min(end, count))
    steps, saved = (
        [report.steps_completed for report in reports],
        [checkpoint.steps for checkpoint in checkpoints],
    )
    positioned: list[tuple[int, Workload]] = []
    for number, report in enumerate(reports):
        positioned.append(
            (before + number + bisect_left(saved, report.steps_completed), _shown(query, report))
        )
    for number, checkpoint in enumerate(checkpoints):
        # If the checkpoint's batch was not read, this place still falls outside the page on the correct side.
        position = number + before + bisect_right(steps, checkpoint.steps)
        positioned.append((position, {"checkpoint": checkpoint_workload(checkpoint)}))
    page = [
        shown for position, shown in sorted(positioned, key=lambda entry: entry[0]) if start <= position < end
    ]
    return page[::-1] if span.window.descending else page


def _shown(query: WorkloadsQuery, report: Report) -> Workload:
    return workload(report, with_batches=query.include_batch_metrics)


async def _by_metric(
    call: UserCall,
    trial: Trial,
    query: WorkloadsQuery,
    groups: list[str | None],
    checkpoints: list[Checkpoint],
) -> tuple[list[Workload], dict[str, int]]:
    """A page ordered by a metric; entries without it come last.

    The reports are read twice, since all may be gigabytes: for their order, and for those of the page.
    """
    name, window = query.sort_key.rpartition(".")[2], query.window
    ranked: list[tuple[float, int, int]] = []
    others: list[tuple[int, int | Checkpoint]] = []
    async for row in _reports(call, trial, groups):
        value = _number(row.metrics.get(name))
        if value is None:
            others.append((row.steps_completed, row.id))
        else:
            ranked.append((value, row.steps_completed, row.id))
        if len(ranked) + len(others) > MAX_SORTED:
            raise invalid(
                f"trial {trial.id} has more than {MAX_SORTED:,} such reports, which is too many to sort by "
                f"a metric: sort by batches, or export them from /api/v1/trials/{trial.id}/metrics/export"
            )
    others += [(checkpoint.steps, checkpoint) for checkpoint in checkpoints]
    ranked.sort(key=lambda entry: entry[:2], reverse=window.descending)
    others.sort(key=lambda entry: entry[0], reverse=window.descending)
    ordered = [id for *_, id in ranked] + [entry for _, entry in others]
    part = paging.span(window, len(ordered))
    page = ordered[part.start : part.end]
    wanted = {entry for entry in page if isinstance(entry, int)}
    shown = await _shown_by_id(call, trial, query, groups, wanted)
    workloads: list[Workload | None] = [
        shown.get(entry) if isinstance(entry, int) else {"checkpoint": checkpoint_workload(entry)}
        for entry in page
    ]
    # A report may have been deleted meanwhile.
    return [workload for workload in workloads if workload is not None], part.pagination


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


async def _reports(call: UserCall, trial: Trial, groups: list[str | None]) -> AsyncIterator[Report]:
    for group in groups:
        async for rows in call.peers.reports([trial.id], group, archived=False):
            for row in rows:
                yield row


async def _shown_by_id(
    call: UserCall, trial: Trial, query: WorkloadsQuery, groups: list[str | None], ids: set[int]
) -> dict[int, Workload]:
    """Reports by id as workloads. Raises `Refused` (400) if they are too large for one answer."""
    workloads: dict[int, Workload] = {}
    size = 0
    async for row in _reports(call, trial, groups if ids else []):
        if row.id in ids:
            workloads[row.id] = _shown(query, row)
            size += len(msgspec.json.encode(workloads[row.id]))
            if size > MAX_BYTES:
                raise too_many(trial.id, len(workloads))
    return workloads

"""What a trial did, in the order that was asked for (REST spec, section 4)."""

from __future__ import annotations

import msgspec

from det_contracts.problems import invalid
from services.gateway.domain import Trial
from services.gateway.present.metrics import VALIDATION, checkpoint_workload, workload
from services.gateway.web.visit import UserVisit

FILTERS = ("ALL", "CHECKPOINT", "VALIDATION", "CHECKPOINT_OR_VALIDATION")
BATCHES = ("", "batches", "total_batches", "totalBatches")
Workload = dict[str, object]


class _Item(msgspec.Struct, frozen=True):
    steps: int
    rank: int
    """Training before validation before checkpoint at the same step."""
    value: object
    """Of the metric that is sorted by."""
    shown: Workload


async def workloads(visit: UserVisit, trial: Trial) -> list[Workload]:
    """All that the query asks for, sorted; the caller cuts a page out of it."""
    kinds = (visit.params.names("filter", "FILTER_OPTION_") or ["ALL"])[-1]
    if kinds not in FILTERS:
        raise invalid(f"filter must be FILTER_OPTION_ and one of {', '.join(FILTERS)}, not '{kinds}'")
    items = [] if kinds == "CHECKPOINT" else await _reports(visit, trial, kinds)
    if kinds != "VALIDATION":
        items += [
            _Item(found.steps, 2, None, {"checkpoint": checkpoint_workload(found)})
            for uuid in trial.checkpoint_uuids
            if (found := visit.catalogue.checkpoint(uuid))
        ]
    return [item.shown for item in _sorted(visit, items)]


async def _reports(visit: UserVisit, trial: Trial, kinds: str) -> list[_Item]:
    group = VALIDATION if kinds != "ALL" else visit.params.text("group") or None
    with_batches = bool(visit.params.flag("include_batch_metrics", default=False))
    name = visit.params.text("sort_key").rpartition(".")[2]
    items = []
    async for rows in visit.peers.reports([trial.id], group, archived=False):
        for row in rows:
            shown = workload(row, with_batches=with_batches)
            rank = 1 if row.group == VALIDATION else 0
            items.append(_Item(row.steps_completed, rank, row.metrics.get(name), shown))
    return items


def _sorted(visit: UserVisit, items: list[_Item]) -> list[_Item]:
    """By batches, or by a metric with those last that lack it."""
    descending = visit.params.window().descending
    items = sorted(items, key=lambda item: (item.steps, item.rank), reverse=descending)
    if visit.params.text("sort_key") in BATCHES:
        return items
    with_metric = [item for item in items if _number(item.value) is not None]
    without = [item for item in items if _number(item.value) is None]
    return sorted(with_metric, key=lambda item: _number(item.value) or 0.0, reverse=descending) + without


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None

"""Joins the answers of several shards to one query into the answer that one process would give."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from det_contracts.queries import (
    BestValidation,
    Buckets,
    LogCause,
    LogFields,
    LogPage,
    MetricNames,
    ReportedSteps,
    Reports,
    ReportVerdict,
    ReportWindow,
    Series,
    StoredLines,
    TrialStatistics,
    TrialSummaries,
    ValidationHistory,
)
from services.metrics.domain import Sharing
from services.metrics.domain.state import experiment_of_task
from services.metrics.paging import page_limit, page_of
from services.metrics.reports.curves import STEPS_PER_PAGE
from services.metrics.reports.statistics import fit_names, fit_summaries

replace = msgspec.structs.replace


def split(sharing: Sharing, query: Any) -> dict[int, Any]:
    """Divide a query among the shards that know something of it: what each is asked, by its number."""
    match query:
        case ReportWindow() | ReportVerdict():
            return {sharing.shard_of_trial(query.trial_id): query}
        case LogPage() | LogFields() | LogCause():
            return {sharing.shard_of_task(experiment_of_task(query.task_id), query.task_id): query}
        case TrialSummaries() | TrialStatistics() | Reports() | Series() | Buckets():
            ids: dict[int, list[int]] = {}
            for id in query.trial_ids:
                ids.setdefault(sharing.shard_of_trial(id), []).append(id)
            return {shard: replace(query, trial_ids=some) for shard, some in ids.items()} or {1: query}
        case _:
            return dict.fromkeys(range(1, sharing.shards + 1), query)


def join(query: Any, answers: Sequence[Any]) -> Any:
    """Join the answers of all shards to their parts of a query."""
    return _JOINS[type(query)](query, answers)


def _summaries(query: TrialSummaries, answers: Sequence[Any]) -> Any:
    return fit_summaries({id: summary for answer in answers for id, summary in answer.items()})


def _statistics(query: TrialStatistics, answers: Sequence[Any]) -> Any:
    return sorted((row for answer in answers for row in answer), key=lambda row: int(row[0]))


def _curves(query: Series | Buckets, answers: Sequence[Any]) -> Any:
    """The rows of all, by the order of the trials in the query. Those of a trial keep their order."""
    order = {id: place for place, id in enumerate(dict.fromkeys(query.trial_ids))}
    return sorted((row for answer in answers for row in answer), key=lambda row: order[row["trial_id"]])


def _reports(query: Reports, answers: Sequence[Any]) -> Any:
    # What a shard has left begins after its last row; nothing beyond that may be told before it.
    ends = [_place(answer["rows"][-1]) for answer in answers if answer["more"]]
    rows = heapq.merge(*(answer["rows"] for answer in answers), key=_place)
    complete_rows = [row for row in rows if not ends or _place(row) <= min(ends)]
    page, more = page_of(complete_rows, _size, page_limit(query.limit))
    return {"rows": page, "more": more or bool(ends)}


def _place(row: Any) -> tuple[int, ...]:
    return row["trial_id"], row["run"], row["steps_completed"], row["id"]


def _size(row: Any) -> int:
    return len(msgspec.json.encode(row))


def _steps(query: ReportedSteps, answers: Sequence[Any]) -> Any:
    ends = [answer["steps"][-1] for answer in answers if answer["more"]]
    steps = sorted({step for answer in answers for step in answer["steps"]})
    # Beyond the end of the shard that has more, steps of that shard may be missing in between.
    page = [step for step in steps if not ends or step <= min(ends)][:STEPS_PER_PAGE]
    return {"steps": page, "more": bool(ends) or len(page) < len(steps)}


def _best(query: BestValidation, answers: Sequence[Any]) -> Any:
    metrics = [answer for answer in answers if answer is not None]
    return (min if query.smaller_is_better else max)(metrics, default=None)


def _history(query: ValidationHistory, answers: Sequence[Any]) -> Any:
    """What was better than all before it is so among what was better than all before it in its shard."""
    sign = 1 if query.smaller_is_better else -1
    history: list[Any] = []
    for row in sorted((row for answer in answers for row in answer), key=lambda row: float(row["at"])):
        if not history or sign * row["metric"] < sign * history[-1]["metric"]:
            history.append(row)
    return history


def _names(query: MetricNames, answers: Sequence[Any]) -> Any:
    return fit_names(
        {(group, name) for answer in answers for group, names in answer.items() for name in names}
    )


def _stored(_: StoredLines, answers: Sequence[Any]) -> Any:
    young = [answer["first_young"] for answer in answers if answer["first_young"] is not None]
    return {
        "bytes": sum(answer["bytes"] for answer in answers),
        "first_young": min(young, default=None),
        "last": max(answer["last"] for answer in answers),
    }


_JOINS: dict[type, Callable[[Any, Sequence[Any]], Any]] = {
    TrialSummaries: _summaries,
    TrialStatistics: _statistics,
    Series: _curves,
    Buckets: _curves,
    Reports: _reports,
    ReportedSteps: _steps,
    BestValidation: _best,
    ValidationHistory: _history,
    MetricNames: _names,
    StoredLines: _stored,
}

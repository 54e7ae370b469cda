"""Profiler series of trials, which are stored as groups of metrics (REST spec, section 4)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from det_contracts.limits import MAX_EXACT_INTEGER
from det_contracts.problems import invalid
from det_contracts.reports import Series
from services.catalogue.api_values import format_time
from services.catalogue.peers import Report
from services.rest_requests.api_call import Authenticated
from services.rest_requests.body import Body, Instant, Long, documented
from services.rest_routes.change_stream import ALREADY_ENDED, period_s, stream_changes, trial_ended
from services.rest_routes.tasks.witness import Witness
from services.web.query import Followed, FromQuery, QueryModel
from services.web.routes import Routes

router = Routes()
GROUPS = {
    "PROFILER_METRIC_TYPE_SYSTEM": "profile.system",
    "PROFILER_METRIC_TYPE_TIMING": "profile.timing",
    "PROFILER_METRIC_TYPE_MISC": "profile.throughput",
}
REPORTED = GROUPS | {"PROFILER_METRIC_TYPE_PROCESS": "profile.process"}
"""Also accepts the workers' measurements of a trial's processes, which 0.25 has no type for."""
TYPES = {group: kind for kind, group in GROUPS.items()}
MAX_VALUES = 10_000


class Labels(Body):
    """The identity of a series."""

    trial_id: Long = 0
    name: Annotated[str, documented(minLength=1)]
    agent_id: str = ""
    gpu_uuid: str = ""
    metric_type: Annotated[str, documented(enum=list(REPORTED))] = "PROFILER_METRIC_TYPE_SYSTEM"


class Batch(Body):
    """Points of one series."""

    values: list[float] = Field(default_factory=list, max_length=MAX_VALUES)
    batches: list[Long] = Field(default_factory=list, max_length=MAX_VALUES)
    timestamps: list[Instant] = Field(default_factory=list, max_length=MAX_VALUES)
    labels: Labels


class Batches(Body):
    """POST /trials/profiler/metrics"""

    batches: list[Batch] = Field(default_factory=list, max_length=1000)


@router.post("/trials/profiler/metrics", ("speak", "body"))
async def report(call: Authenticated, body: Batches) -> Response:
    """Store points of series, for the current run of each trial."""
    for batch in body.batches:
        _check(batch)
    for trial_id in dict.fromkeys(batch.labels.trial_id for batch in body.batches):
        witness = Witness(call, trial_id)
        mine = [batch for batch in body.batches if batch.labels.trial_id == trial_id and batch.values]
        await witness.report(*(_series(batch) for batch in mine))
    return call.answer({})


def _check(batch: Batch) -> None:
    if batch.labels.metric_type not in REPORTED:
        raise invalid(
            f"labels.metricType must be one of {', '.join(REPORTED)}, not '{batch.labels.metric_type}'"
        )
    if not batch.labels.name:
        raise invalid("labels.name is missing: the name of the series")
    if len(batch.values) != len(batch.batches) or len(batch.timestamps) not in (0, len(batch.values)):
        raise invalid(f"series '{batch.labels.name}': values, batches and timestamps differ in length")
    if any(not 0 <= steps <= MAX_EXACT_INTEGER for steps in batch.batches):
        raise invalid(f"series '{batch.labels.name}': batches must be from 0 to {MAX_EXACT_INTEGER}")


def _series(batch: Batch) -> Series:
    labels = batch.labels
    name = f"{labels.name}.{labels.gpu_uuid}" if labels.gpu_uuid else labels.name
    at = [timestamp.timestamp() for timestamp in batch.timestamps] or [time.time()] * len(batch.values)
    return Series(
        group=REPORTED[labels.metric_type],
        steps=list(batch.batches),
        at=at,
        columns={name: list(batch.values)},
        batch_metrics=[],
    )


class SeriesQuery(QueryModel):
    """GET /trials/{trial_id}/profiler/metrics"""

    name: str = Field("", alias="labels.name")
    kind: str = Field("", alias="labels.metricType")


@router.get("/trials/{trial_id}/profiler/available_series", ("view", "trial"))
async def available(call: Authenticated, trial_id: int, query: FromQuery[Followed]) -> Response:
    """The available series; with `follow`, updated until the trial has ended."""
    call.catalogue.trial(trial_id)

    async def ask() -> dict[str, Any]:
        summary = (await call.peers.summaries([trial_id])).get(trial_id)
        groups = summary.summary if summary is not None else {}
        labels = [
            _labels(trial_id, kind, name)
            for kind, group in GROUPS.items()
            for name in sorted(groups.get(group, {}))
        ]
        return {"labels": labels}

    end = trial_ended(trial_id) if query.follow else ALREADY_ENDED
    return call.stream(stream_changes(call, ask, end, period_s(query)))


def _labels(trial_id: int, kind: str, name: str) -> dict[str, Any]:
    return {"trialId": trial_id, "name": name, "agentId": "", "gpuUuid": "", "metricType": kind}


@router.get("/trials/{trial_id}/profiler/metrics", ("view", "trial"))
async def series(call: Authenticated, trial_id: int, query: FromQuery[SeriesQuery]) -> Response:
    """The reported points of the series with `labels.name` and `labels.metricType`."""
    call.catalogue.trial(trial_id)
    name, kind = query.name, query.kind
    if not name:
        raise invalid("labels.name must name a series; see available_series")
    groups = [GROUPS[kind]] if kind in GROUPS else list(TYPES)

    async def pages() -> AsyncIterator[list[object]]:
        for group in groups:
            async for rows in call.peers.reports([trial_id], group, archived=False):
                matching_rows = [row for row in rows if name in row.metrics]
                if matching_rows:
                    yield [{"batch": _batch(trial_id, TYPES[group], name, matching_rows)}]

    return call.stream(pages())


def _batch(trial_id: int, kind: str, name: str, rows: list[Report]) -> dict[str, Any]:
    return {
        "values": [row.metrics[name] for row in rows],
        "batches": [row.steps_completed for row in rows],
        "timestamps": [format_time(row.at) for row in rows],
        "labels": _labels(trial_id, kind, name),
    }

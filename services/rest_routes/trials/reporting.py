"""Reporting of metrics by scripts (REST spec, section 4, metric rules)."""

from __future__ import annotations

import time
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from det_contracts import subjects
from det_contracts.problems import invalid
from det_contracts.queries import ReportVerdict
from det_contracts.reports import MAX_METRICS_PER_REPORT, Series
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.body import NOT_A_FLAG, Body, Long, documented
from services.rest_routes.tasks.witness import Witness
from services.web.routes import Routes

router = Routes()


class Values(Body):
    """The metric values."""

    avg_metrics: dict[str, Any] = Field(default_factory=dict)
    # Stop at the first error: reporting hundreds of thousands of them takes long.
    batch_metrics: list[dict[str, Any]] | None = Field(default=None, fail_fast=True)


class TrialMetrics(Body):
    """Metrics of a run at a step."""

    trial_id: Long = 0
    trial_run_id: Long = 0
    steps_completed: Annotated[int, Field(ge=0, lt=2**53), NOT_A_FLAG] = 0
    metrics: Values = Values()


class GroupedMetrics(Body):
    """POST /trials/{id}/metrics"""

    metrics: TrialMetrics
    group: Annotated[str, documented(minLength=1)]


@router.post("/trials/{trial_id}/metrics", ("speak", "trial"))
async def report(call: Authenticated, trial_id: int, body: GroupedMetrics) -> Response:
    """Report metrics of any group."""
    if not body.group:
        raise invalid("group is missing: training, validation or a name of your own")
    return await _report(call, trial_id, body.group, body.metrics)


@router.post("/trials/{trial_id}/training_metrics", ("speak", "trial"))
async def report_training(call: Authenticated, trial_id: int, body: TrialMetrics) -> Response:
    """Report training metrics."""
    return await _report(call, trial_id, "training", body)


@router.post("/trials/{trial_id}/validation_metrics", ("speak", "trial"))
async def report_validation(call: Authenticated, trial_id: int, body: TrialMetrics) -> Response:
    """Report validation metrics."""
    return await _report(call, trial_id, "validation", body)


async def _report(call: UserCall, trial_id: int, group: str, body: TrialMetrics) -> Response:
    """Store a report, and answer once the metrics service has judged it."""
    witness = Witness(call, trial_id)
    run = witness.reporting_run
    # A run that was replaced may still be alive somewhere, and must not mix its metrics into those of its
    # successor.
    if body.trial_run_id != run:
        raise invalid(f"invalid run id, {body.trial_run_id} (reported) != {run} (expected)")
    metrics = body.metrics
    if len(metrics.avg_metrics) > MAX_METRICS_PER_REPORT:
        raise invalid(
            f"a report may have at most {MAX_METRICS_PER_REPORT} metrics, not {len(metrics.avg_metrics)}"
        )
    series = Series(
        group=group,
        steps=[body.steps_completed],
        at=[time.time()],
        columns={name: [value] for name, value in metrics.avg_metrics.items()},
        batch_metrics=[] if metrics.batch_metrics is None else [metrics.batch_metrics],
    )
    position = await witness.report(series)
    # The client must learn of a refused report, as in 0.25, where the answer itself says it.
    verdict = ReportVerdict(trial_id, position)
    refusal = await call.peers.query(verdict, stream=subjects.REPORTS, position=position)
    if refusal:
        raise invalid(refusal)
    return call.answer({})

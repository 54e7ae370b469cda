"""Metrics as curves over trials, once or as a stream of updates (REST spec, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic import Field
from starlette.responses import Response

from det_contracts import queries
from det_contracts.problems import invalid
from services.catalogue.api_values import format_time
from services.catalogue.domain import Trial
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.change_stream import (
    experiments_ended,
    period_s,
    stream_changed_parts,
    stream_changes,
)
from services.rest_routes.present import curve
from services.rest_routes.present.metrics import VALIDATION
from services.rest_routes.trials import curve_queries as curves
from services.rest_routes.trials.curve_queries import Curve, CurveSelection, WindowQuery
from services.rest_routes.trials.trials import show
from services.web.query import NOTHING, FromQuery, Grouped, Integer, Integers, MaybeInteger, Periodic
from services.web.routes import Routes

router = Routes()
DEFAULT_TRIALS = 100
"""Default number of curves in a sample."""


class CurvesQuery(WindowQuery, Grouped):
    """GET /trials/time-series"""

    trial_ids: Integers = NOTHING
    metric_names: list[str] = NOTHING
    metric_ids: list[str] = NOTHING
    filtered: str = Field("", alias="timeSeriesFilter.name")
    above: MaybeInteger = Field(None, alias="timeSeriesFilter.integerRange.gt")
    at_least: MaybeInteger = Field(None, alias="timeSeriesFilter.integerRange.gte")
    below: MaybeInteger = Field(None, alias="timeSeriesFilter.integerRange.lt")
    at_most: MaybeInteger = Field(None, alias="timeSeriesFilter.integerRange.lte")

    def filtered_window(self) -> tuple[int, int | None, int]:
        """The window, narrowed by `timeSeriesFilter`. Raises `Refused` (400) for another axis."""
        if self.filtered not in ("", "batches"):
            raise invalid(f"timeSeriesFilter.name must be batches, not '{self.filtered[:40]}'")
        first, last, limit = self.window()
        lows = _shifted((self.at_least, 0), (self.above, 1))
        highs = _shifted((last, 0), (self.at_most, 0), (self.below, -1))
        return max([first, *lows]), min(highs, default=None), limit


def _shifted(*bounds: tuple[int | None, int]) -> list[int]:
    return [bound + change for bound, change in bounds if bound is not None]


class MetricNamesQuery(Periodic):
    """GET /experiments/metrics-stream/metric-names"""

    ids: Integers = NOTHING


class MetricQuery(Periodic, Grouped):
    """A single metric."""

    metric_name: str = ""


class SnapshotQuery(MetricQuery):
    """GET /experiments/{id}/metrics-stream/trials-snapshot"""

    batches_processed: Integer = 0
    batches_margin: Integer = 0


class SampleQuery(MetricQuery, WindowQuery):
    """GET /experiments/{id}/metrics-stream/trials-sample"""

    max_trials: Integer = 0


@router.get("/trials/time-series", ("view", "listed"))
async def time_series(call: Authenticated, query: FromQuery[CurvesQuery]) -> Response:
    """Curves of trials. A long curve is downsampled, keeping the extremes of each interval and both ends."""
    ids = list(dict.fromkeys(query.trial_ids))
    if not ids:
        raise invalid("trialIds must name at least one trial")
    # Before `check_view`, whose look-up would otherwise read evicted trials in the event loop, one by one.
    await call.catalogue.evicted.load(("trials", id) for id in ids)
    trials = [call.catalogue.trial(id) for id in ids]
    call.check_view("trial", *ids)
    first, last, limit = query.filtered_window()
    metrics_by_trial: dict[int, list[dict[str, Any]]] = {id: [] for id in ids}
    for group, names in _names(query):
        for trial_curve in await curves.fetch_curves(
            call.peers, ids, CurveSelection(names, group, first, last, limit)
        ):
            metrics_by_trial[trial_curve.trial_id].append(curve.metrics(trial_curve))
    shown = [{"trial": trial, "metrics": metrics_by_trial[trial["id"]]} for trial in await show(call, trials)]
    return call.answer({"trials": shown})


def _names(query: CurvesQuery) -> list[tuple[str | None, list[str]]]:
    """Metric names by group; None stands for every group."""
    names_by_group: dict[str | None, list[str]] = {}
    for id in query.metric_ids:
        group, dot, name = id.partition(".")
        if not (group and dot and name):
            raise invalid(f"metricIds are written group.name, as validation.loss; '{id}' is not")
        names_by_group.setdefault(group, []).append(name)
    if query.metric_names:
        names_by_group.setdefault(query.metric_group or None, []).extend(query.metric_names)
    if not names_by_group:
        raise invalid("metricNames or metricIds must name at least one metric")
    return list(names_by_group.items())


@router.get("/experiments/{experiment_id}/validation-history", ("view", "experiment"))
async def validation_history(call: Authenticated, experiment_id: int) -> Response:
    """The best searcher metric of an experiment over time."""
    smaller = call.catalogue.experiment(experiment_id).smaller_is_better
    rows = await call.peers.query(queries.ValidationHistory(experiment_id, smaller))
    shown = [
        {"trialId": row["trial_id"], "endTime": format_time(row["at"]), "searcherMetric": row["metric"]}
        for row in rows
    ]
    return call.answer({"validationHistory": shown})


@router.get("/experiments/metrics-stream/metric-names", ("view", "listed"))
async def metric_names(call: Authenticated, query: FromQuery[MetricNamesQuery]) -> Response:
    """The names of the metrics of experiments."""
    ids = query.ids
    if not ids:
        raise invalid("ids must name at least one experiment")
    call.check_view("experiment", *ids)
    searched = sorted({call.catalogue.experiment(id).metric for id in ids})

    async def ask() -> dict[str, Any]:
        names_by_group = await call.peers.query(queries.MetricNames(ids))
        names = [{"group": group, "name": name} for group, names in names_by_group.items() for name in names]
        return {"searcherMetrics": searched, "metricNames": names}

    return call.stream(stream_changes(call, ask, experiments_ended(ids), period_s(query)))


def _metric(query: MetricQuery) -> tuple[str, str]:
    """The group and name of the requested metric."""
    if not query.metric_name:
        raise invalid("metricName must name a metric")
    return query.metric_group or VALIDATION, query.metric_name


@router.get("/experiments/{experiment_id}/metrics-stream/batches", ("view", "experiment"))
async def batches(call: Authenticated, experiment_id: int, query: FromQuery[MetricQuery]) -> Response:
    """The batches at which a metric was reported. Add up what is sent: many are sent in parts."""
    call.catalogue.experiment(experiment_id)
    group, name = _metric(query)

    async def ask() -> AsyncIterator[dict[str, Any]]:
        async for steps in curves.reported_batches(call.peers, experiment_id, group, name):
            yield {"batches": steps}

    return call.stream(stream_changed_parts(call, ask, experiments_ended([experiment_id]), period_s(query)))


@router.get("/experiments/{experiment_id}/metrics-stream/trials-snapshot", ("view", "experiment"))
async def snapshot(call: Authenticated, experiment_id: int, query: FromQuery[SnapshotQuery]) -> Response:
    """The values of a metric in all trials at about the same batch."""
    call.catalogue.experiment(experiment_id)
    group, name = _metric(query)
    at, margin = query.batches_processed, query.batches_margin
    if at < 0 or margin < 0:
        raise invalid("batches_processed and batches_margin must not be below 0")
    selection = CurveSelection([name], group, max(0, at - margin), at + margin, nearest=at)

    async def ask() -> dict[str, Any]:
        trial_ids = list(call.catalogue.state.trials_of.ids(experiment_id))
        trial_curves = await curves.fetch_curves(call.peers, trial_ids, selection)
        return {"trials": [_snapshot_row(call, trial_curve, name) for trial_curve in trial_curves]}

    return call.stream(stream_changes(call, ask, experiments_ended([experiment_id]), period_s(query)))


def _snapshot_row(call: UserCall, trial_curve: Curve, name: str) -> dict[str, Any]:
    batches, _, _, values = trial_curve.points[0]
    hparams = call.catalogue.trial(trial_curve.trial_id).hparams
    return {
        "trialId": trial_curve.trial_id,
        "hparams": hparams,
        "metric": values[name],
        "batchesProcessed": batches,
    }


@router.get("/experiments/{experiment_id}/metrics-stream/trials-sample", ("view", "experiment"))
async def sample(call: Authenticated, experiment_id: int, query: FromQuery[SampleQuery]) -> Response:
    """Curves of the best trials, and which trials entered or left the sample."""
    call.catalogue.experiment(experiment_id)
    group, name = _metric(query)
    first, last, limit = query.window()
    most = query.max_trials or DEFAULT_TRIALS
    if most < 0:
        raise invalid(f"max_trials must not be {most}; 0 means {DEFAULT_TRIALS}")
    selection = CurveSelection([name], group, first, last, limit)
    # The client keeps the sample and is sent only the difference, so each stream remembers what it has sent.
    before: list[int] = []

    async def ask() -> dict[str, Any]:
        experiment = call.catalogue.experiment(experiment_id)
        trials = curves.best_trials(call.catalogue.state, experiment, most)
        trial_curves = await curves.fetch_curves(call.peers, [trial.id for trial in trials], selection)
        ids = [trial.id for trial in trials]
        moved = {
            "promotedTrials": [id for id in ids if id not in before],
            "demotedTrials": [id for id in before if id not in ids],
        }
        before[:] = ids
        return {"trials": _sampled(trials, trial_curves), **moved}

    return call.stream(stream_changes(call, ask, experiments_ended([experiment_id]), period_s(query)))


def _sampled(trials: list[Trial], trial_curves: list[Curve]) -> list[dict[str, Any]]:
    data = {trial_curve.trial_id: curve.data(trial_curve) for trial_curve in trial_curves}
    return [
        {"trialId": trial.id, "hparams": trial.hparams, "data": data.get(trial.id, [])} for trial in trials
    ]

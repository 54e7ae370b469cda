"""Trials that judge a checkpoint or train it further, with their metrics (`trial-source-info` of 0.25)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from starlette.responses import Response

from det_contracts.commands import ReportTrialSource
from det_contracts.problems import invalid, not_found
from services.catalogue.domain.state import TrialSource, source_key
from services.catalogue.single_reports import MAX_ANSWERS
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.body import Body, Long
from services.rest_routes.checkpoints.models import find_version
from services.rest_routes.present.metrics import report as present_report
from services.rest_routes.tasks.witness import Witness
from services.web.query import FromQuery, QueryModel, enum_value
from services.web.routes import Routes

router = Routes()
PREFIX = "TRIAL_SOURCE_INFO_TYPE_"
KINDS = ("INFERENCE", "FINE_TUNING")
MAX_TRIALS = 1000
"""Maximum number of trials in one answer; the newest are kept."""
MAX_REPORTS = 10_000
"""Maximum number of reports in one answer. `GET /trials/metrics/trial_metrics` streams all of a trial's."""


class SourceBody(Body):
    """A checkpoint that a trial uses."""

    trial_id: Long = 0
    checkpoint_uuid: str = ""
    trial_source_info_type: Literal["TRIAL_SOURCE_INFO_TYPE_INFERENCE", "TRIAL_SOURCE_INFO_TYPE_FINE_TUNING"]
    model_id: Long | None = None
    model_version: Long | None = None


class SourceReport(Body):
    """POST /trial-source-info"""

    trial_source_info: SourceBody


class SourcesQuery(QueryModel):
    """Query parameters: what the trials do with the checkpoint."""

    trial_source_info_type: Annotated[str, enum_value(PREFIX, KINDS)] = ""


@router.post("/trial-source-info", ("speak", "body"))
async def report(call: Authenticated, body: SourceReport) -> Response:
    """Record that a trial judges a checkpoint or trains it further."""
    source = body.trial_source_info
    kind = source.trial_source_info_type.removeprefix(PREFIX)
    if bool(source.model_id) != bool(source.model_version):
        raise invalid("modelId and modelVersion name a version together: give both, or neither")
    await call.catalogue.evicted.load([("trials", source.trial_id), ("checkpoints", source.checkpoint_uuid)])
    # For its check of who may speak for the trial; nothing is stated.
    Witness(call, source.trial_id)
    call.check_view("checkpoint", source.checkpoint_uuid)
    command = ReportTrialSource(
        trial_id=source.trial_id,
        uuid=source.checkpoint_uuid,
        kind=kind,  # type: ignore[arg-type]
        model_id=source.model_id or None,
        version=source.model_version or None,
        user=call.user.username,
    )
    await call.peers.command(command)
    return call.answer({"trialId": source.trial_id, "checkpointUuid": source.checkpoint_uuid})


@router.get("/checkpoints/{uuid}/trial-source-info-metrics", ("view", "checkpoint"))
async def of_checkpoint(call: Authenticated, uuid: str, query: FromQuery[SourcesQuery]) -> Response:
    """The trials that use a checkpoint, oldest first, and what they reported."""
    if uuid not in call.catalogue.state.checkpoints:
        raise not_found("checkpoint", uuid)
    return await _answer(call, query, _using(call, uuid))


@router.get("/models/{name}/versions/{number}/trial-source-info-metrics", ("view", "model"))
async def of_version(call: Authenticated, name: str, number: int, query: FromQuery[SourcesQuery]) -> Response:
    """The trials that use a version of a model as such, and what they reported."""
    version = find_version(call.catalogue.state, name, number)
    sources = [
        source
        for source in _using(call, version.checkpoint)
        if (source.model_id, source.version) == (version.model_id, version.number)
    ]
    return await _answer(call, query, sources)


def _using(call: UserCall, uuid: str) -> list[TrialSource]:
    state = call.catalogue.state
    return [state.sources[source_key(id, uuid)] for id in state.trials_using.ids(uuid)]


async def _answer(call: UserCall, query: SourcesQuery, sources: Iterable[TrialSource]) -> Response:
    chosen = [source for source in sources if query.trial_source_info_type in ("", source.kind)]
    newest = await _newest_visible(call, chosen)
    reports = await _reports(call, [source.trial_id for source in newest])
    return call.answer({"data": [_shown(source, reports[source.trial_id]) for source in newest]})


async def _newest_visible(call: UserCall, sources: Sequence[TrialSource]) -> list[TrialSource]:
    """The newest `MAX_TRIALS` of sources whose trials the caller may see, oldest first."""
    newest: list[TrialSource] = []
    for end in range(len(sources), 0, -MAX_TRIALS):
        batch = sources[max(end - MAX_TRIALS, 0) : end]
        await call.catalogue.evicted.load(("trials", source.trial_id) for source in batch)
        newest = [*_visible(call, batch), *newest][-MAX_TRIALS:]
        if len(newest) == MAX_TRIALS:
            break
    return newest


def _visible(call: UserCall, sources: Sequence[TrialSource]) -> list[TrialSource]:
    state, visibility = call.catalogue.state, call.visibility
    return visibility.filter_visible(
        lambda source: visibility.includes_experiment(state.trials[source.trial_id].experiment_id),
        [source for source in sources if source.trial_id in state.trials],
    )


async def _reports(call: UserCall, trial_ids: list[int]) -> dict[int, list[dict[str, Any]]]:
    """Reports of trials, at most `MAX_REPORTS` together, and `MAX_ANSWERS` if they are large."""
    reports_by_trial: dict[int, list[dict[str, Any]]] = {id: [] for id in trial_ids}
    count = answers = 0
    async for rows in call.peers.reports(trial_ids, None, archived=False):
        for row in rows[: MAX_REPORTS - count]:
            reports_by_trial[row.trial_id].append(present_report(row))
        count += len(rows)
        answers += 1
        if count >= MAX_REPORTS or answers == MAX_ANSWERS:
            break
    return reports_by_trial


def _shown(source: TrialSource, reports: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "trialId": source.trial_id,
        "trialSourceInfoType": f"{PREFIX}{source.kind}",
        "metricReports": reports,
        "checkpointUuid": source.checkpoint,
        "modelId": source.model_id,
        "modelVersion": source.version,
    }

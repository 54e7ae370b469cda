"""Previews which checkpoints retention would delete (REST spec, section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from det_contracts.problems import invalid
from det_contracts.queries import PreviewRetention
from services.catalogue.api_values import format_time
from services.catalogue.domain import Checkpoint
from services.rest_requests.api_call import Authenticated
from services.rest_routes.present.checkpoint import checkpoint
from services.web.query import FromQuery, Integer, QueryModel
from services.web.routes import Routes

root = Routes()


class KeepNumbersQuery(QueryModel):
    """Query parameters: how many checkpoints to keep."""

    save_experiment_best: Integer = 0
    save_trial_best: Integer = 0
    save_trial_latest: Integer = 0


@root.get("/experiments/{experiment_id}/preview_gc", ("view", "experiment"))
async def preview(call: Authenticated, experiment_id: int, query: FromQuery[KeepNumbersQuery]) -> Response:
    """The checkpoints that would be deleted if the experiment had ended and used these numbers."""
    experiment = call.catalogue.experiment(experiment_id)
    keep_numbers = [query.save_experiment_best, query.save_trial_best, query.save_trial_latest]
    if min(keep_numbers) < 0:
        raise invalid(f"{', '.join(KeepNumbersQuery.model_fields)} must not be below 0")
    best, trial_best, trial_latest = keep_numbers
    question = PreviewRetention(
        experiment_id=experiment_id, experiment_best=best, trial_best=trial_best, trial_latest=trial_latest
    )
    uuids: list[str] = await call.peers.query(question, position=call.catalogue.position)

    async def show(some: Sequence[str]) -> list[dict[str, Any]]:
        # Again for each part: what is not used for a while leaves memory.
        await call.catalogue.evicted.load(
            [("submissions", experiment_id), *(("checkpoints", uuid) for uuid in some)]
        )
        state = call.catalogue.state
        deletable = [state.checkpoints[uuid] for uuid in some if uuid in state.checkpoints]
        return [{**checkpoint(record, state), **_as_in_0_25(record)} for record in deletable]

    return await call.answer_list("checkpoints", uuids, show, metric_name=experiment.metric)


def _as_in_0_25(record: Checkpoint) -> dict[str, Any]:
    """Additional names that 0.25 clients read only here."""
    return {
        "TrialID": record.trial_id,
        "ReportTime": format_time(record.at),
        "UUID": record.uuid,
        "StepsCompleted": record.metadata.get("steps_completed", 0),
        "State": record.state,
        "ValidationMetrics": {}
        if record.metric is None
        else {"avgMetrics": {"searcherMetric": record.metric}},
        "Resources": record.resources,
    }

"""What retention would delete (REST spec, section 8)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import invalid
from det_contracts.queries import PreviewRetention
from services.gateway.present.checkpoint import checkpoint
from services.gateway.web.visit import Asked

root = APIRouter()
NUMBERS = ("save_experiment_best", "save_trial_best", "save_trial_latest")


@root.get("/experiments/{experiment_id}/preview_gc")
async def preview(visit: Asked, experiment_id: int) -> Response:
    """Checkpoints that would go, were the experiment over and these its numbers."""
    one = visit.catalogue.experiment(experiment_id)
    found = [visit.params.integer(name) for name in NUMBERS]
    if min(found) < 0:
        raise invalid(f"{', '.join(NUMBERS)} must not be below 0")
    best, trial_best, trial_latest = found
    query = PreviewRetention(
        experiment_id=experiment_id, experiment_best=best, trial_best=trial_best, trial_latest=trial_latest
    )
    state = visit.catalogue.state
    going = [state.checkpoints[uuid] for uuid in await visit.peers.ask(query) if uuid in state.checkpoints]
    return visit.answer({"checkpoints": [checkpoint(one, state) for one in going], "metric_name": one.metric})

"""Checkpoints (REST spec, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlalchemy as sa
from fastapi import APIRouter
from starlette.responses import Response

from services.gateway import listing
from services.gateway.domain import Checkpoint
from services.gateway.listing import Found
from services.gateway.paging import Window
from services.gateway.peers import Report
from services.gateway.present.checkpoint import checkpoint
from services.gateway.present.metrics import VALIDATION
from services.gateway.web.visit import Asked, UserVisit

router = APIRouter()


@router.get("/experiments/{experiment_id}/checkpoints")
async def of_experiment(visit: Asked, experiment_id: int) -> Response:
    """A page of the checkpoints of an experiment."""
    visit.catalogue.experiment(experiment_id)
    return await _list(visit, experiment_id=experiment_id)


@router.get("/trials/{trial_id}/checkpoints")
async def of_trial(visit: Asked, trial_id: int) -> Response:
    """A page of the checkpoints of a trial."""
    visit.catalogue.trial(trial_id)
    return await _list(visit, trial_id=trial_id)


async def _list(visit: UserVisit, **of: int) -> Response:
    found = await visit.catalogue.read(_query(visit, **of))
    records = [visit.catalogue.checkpoint(uuid) for uuid in found.ids]
    validations = await _validations(visit, records)
    state = visit.catalogue.state
    shown = [checkpoint(one, state, validation=validations.get((one.trial_id, one.steps))) for one in records]
    return visit.answer({"checkpoints": shown, "pagination": found.span.pagination})


def _query(visit: UserVisit, **of: int) -> Callable[[sa.Connection], Found]:
    states, sort = visit.params.names("states", "STATE_"), visit.params.sort("END_TIME")
    window: Window = visit.params.window()
    return lambda connection: listing.checkpoints(connection, states, sort, window, **of)


async def _validations(visit: UserVisit, records: Sequence[Checkpoint]) -> dict[tuple[int, int], Report]:
    trials = sorted({one.trial_id for one in records})
    found = {}
    async for rows in visit.peers.reports(trials, VALIDATION, archived=False):
        found.update({(row.trial_id, row.steps_completed): row for row in rows})
    return found


@router.get("/checkpoints/{uuid}")
async def get(visit: Asked, uuid: str) -> Response:
    """One checkpoint with the metrics of its step."""
    one = visit.catalogue.checkpoint(uuid)
    state = visit.catalogue.state
    run = int(one.allocation_id.rpartition(".")[2])
    training = await visit.peers.report_at(one.trial_id, run, "training", one.steps)
    validation = await visit.peers.report_at(one.trial_id, run, VALIDATION, one.steps)
    return visit.answer({"checkpoint": checkpoint(one, state, training=training, validation=validation)})

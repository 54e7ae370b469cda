"""Experiments (REST spec, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec
import sqlalchemy as sa
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from det_contracts.commands import Action, ChangeExperiment
from det_contracts.expconf import mask_secrets
from det_contracts.problems import Problem, Refused
from services.catalogue import listing
from services.catalogue.display_state import STATES, experiment_state
from services.catalogue.domain import Experiment
from services.catalogue.listing import ExperimentFilter, IdPage
from services.catalogue.peers import pools_or_empty
from services.kit.paging import Window, experiments_span
from services.people import users
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import CreateExperiment
from services.rest_requests.body import request_schema
from services.rest_routes.cluster import forecast
from services.rest_routes.present import job
from services.rest_routes.present.answers import Experiment as Shape
from services.rest_routes.present.answers import OneExperiment, page_schema, response_schema
from services.rest_routes.present.experiment import EMPTY_EXPERIMENT, experiment
from services.submission import archive, submit
from services.web.query import (
    NOTHING,
    Flag,
    FromQuery,
    Integer,
    Integers,
    MaybeFlag,
    MaybeInteger,
    Paged,
    Users,
    enum_value,
    enum_values,
)
from services.web.routes import Routes

router = Routes()
SORTS = (*listing.EXPERIMENT_SORTS, listing.PROGRESS)


class ExperimentsQuery(Paged, Users):
    """GET /experiments"""

    sort_by: Annotated[str, enum_value("SORT_BY_", SORTS)] = "ID"
    name: str = ""
    description: str = ""
    labels: list[str] = NOTHING
    archived: MaybeFlag = None
    states: Annotated[list[str], enum_values("STATE_", STATES)] = NOTHING
    project_id: Integer = 0
    experiment_id_filter: Integers = NOTHING
    including: Integers = Field(default_factory=list, alias="experimentIdFilter.incl")
    excluding: Integers = Field(default_factory=list, alias="experimentIdFilter.notIn")
    above: MaybeInteger = Field(None, alias="experimentIdFilter.gt")
    at_least: MaybeInteger = Field(None, alias="experimentIdFilter.gte")
    below: MaybeInteger = Field(None, alias="experimentIdFilter.lt")
    at_most: MaybeInteger = Field(None, alias="experimentIdFilter.lte")
    lean: Flag = False


@router.post("/experiments", ("create", "body"), **request_schema(CreateExperiment))
async def create(call: Authenticated) -> Response:
    """Validate a configuration and a context, and create an experiment from them."""
    return await submit_experiment(call, "")


async def submit_experiment(call: UserCall, external_id: str) -> Response:
    """Answer a submission. With an external id, the experiment of that id is returned if it exists."""
    try:
        async with submit.receive(call, "experiment") as (request, code):
            ready = await submit.check_submission(call, request, code)
    except archive.TooLarge as error:
        raise HTTPException(413, str(error)) from None
    if request.validate_only:
        return call.answer(
            {"experiment": EMPTY_EXPERIMENT, "config": mask_secrets(ready.command.config), **_warnings(ready)}
        )
    # The leading colon cannot clash with older keys, which began with a user name: no user name is empty.
    key = f":{external_id}" if external_id else ""
    id = await call.create(msgspec.structs.replace(ready.command, request_key=key))
    # An external id may belong to an experiment that somebody else has created in a workspace which this user
    # must not see.
    call.check_view("experiment", id)
    shown = await _show_submitted(call, id, can_start=ready.fits)
    config = mask_secrets(call.catalogue.submission(id).config)
    return call.answer({"experiment": shown, "config": config, **_warnings(ready)})


def _warnings(ready: submit.CheckedSubmission) -> dict[str, list[str]]:
    return {"warnings": ready.warnings, "notices": ready.notices}


async def _show_submitted(call: UserCall, id: int, *, can_start: bool) -> dict[str, Any]:
    """An experiment as it was submitted.

    No other service is asked: they are about to place its trials, and each question would delay that.
    """
    trials = await load_for_display(call, [id])
    return experiment(call.catalogue.experiment(id), call.catalogue.state, trials[id], can_start=can_start)


async def show(call: UserCall, id: int) -> dict[str, Any]:
    """One experiment, with facts that only other services know."""
    record = call.catalogue.experiment(id)
    progress = {} if record.ended_at is not None else await call.peers.progress([id])
    waiting_reason = await _waiting_reason(call, record)
    unable = await unable_to_start(call, [record])
    trials = await load_for_display(call, [id])
    # The experiment may have been deleted meanwhile.
    return experiment(
        call.catalogue.experiment(id),
        call.catalogue.state,
        trials[id],
        progress=progress.get(id),
        waiting_reason=waiting_reason,
        can_start=id not in unable,
    )


async def load_for_display(call: UserCall, ids: Sequence[int], lean: bool = False) -> dict[int, list[int]]:
    """Load what experiments are shown with: their submissions, unless `lean`, and their trials' ids."""
    if not lean:
        await call.catalogue.evicted.load(("submissions", id) for id in ids)
    trial_ids: dict[int, list[int]] = await call.catalogue.evicted.fetch_trial_ids(ids)
    return trial_ids


async def unable_to_start(call: UserCall, records: Iterable[Experiment]) -> set[int]:
    """Those among some experiments that wait for slots which their pool can never have."""
    waiting = [record for record in records if experiment_state(record) == "QUEUED"]
    pools = await pools_or_empty(call.peers) if waiting else []
    return forecast.unschedulable_experiments(waiting, call.catalogue.state, pools)


async def _waiting_reason(call: UserCall, record: Experiment) -> str:
    if experiment_state(record) != "QUEUED":
        return ""
    reasons = await call.peers.waiting(record.id)
    return next(iter(reasons.values()), "")


@router.get("/experiments", ("view", "listed"), **page_schema("experiments", Shape))
async def list_experiments(call: Authenticated, query: FromQuery[ExperimentsQuery]) -> Response:
    """A page of experiments (REST spec, 3.2). Our addition `lean` leaves out their configurations."""
    experiment_filter, sort, window = _filter(call, query), query.sort_by, query.window
    if sort == listing.PROGRESS:
        page = await _by_progress(call, experiment_filter, window)
    else:
        page = await call.catalogue.read(
            lambda connection: listing.experiment_page(connection, experiment_filter, sort, window)
        )

    async def show_page(ids: Sequence[int]) -> list[dict[str, Any]]:
        return await _show_all(call, ids, lean=query.lean)

    return await call.answer_list("experiments", page.ids, show_page, pagination=page.span.pagination)


async def _show_all(call: UserCall, ids: Sequence[int], *, lean: bool) -> list[dict[str, Any]]:
    state = call.catalogue.state
    experiments = state.experiments
    progress = await call.peers.progress(
        [id for id in ids if id in experiments and not experiments[id].ended_at]
    )
    unable = await unable_to_start(call, [experiments[id] for id in ids if id in experiments])
    trials = await load_for_display(call, ids, lean)
    # Some may have been deleted since the list was read.
    records = [experiments[id] for id in ids if id in experiments]
    return [
        experiment(
            record,
            state,
            trials[record.id],
            progress=progress.get(record.id),
            can_start=record.id not in unable,
            lean=lean,
        )
        for record in records
    ]


def _filter(call: UserCall, query: ExperimentsQuery) -> ExperimentFilter:
    return ExperimentFilter(
        name=query.name,
        description=query.description,
        labels=query.labels,
        archived=query.archived,
        states=query.states,
        users=users.names_of(call.catalogue.state, query.users, query.user_ids),
        project_id=query.project_id,
        projects=call.visibility.visible_projects(),
        ids=query.including or query.experiment_id_filter,
        not_ids=query.excluding,
        first_id=max(query.at_least or 0, (query.above or 0) + 1),
        last_id=_last_id(query),
    )


def _last_id(query: ExperimentsQuery) -> int | None:
    bounds = [query.at_most] if query.at_most is not None else []
    bounds += [query.below - 1] if query.below is not None else []
    return min(bounds, default=None)


async def _by_progress(call: UserCall, experiment_filter: ExperimentFilter, window: Window) -> IdPage:
    """Sort by progress here, as only the searcher knows it. Experiments without progress come last."""

    def everything(connection: sa.Connection) -> list[int]:
        return listing.all_experiment_ids(connection, experiment_filter)

    ids = await call.catalogue.read(everything)
    experiments = call.catalogue.state.experiments
    progress = await call.peers.progress(
        [id for id in ids if id in experiments and not experiments[id].ended_at]
    )
    sign = -1 if window.descending else 1
    ids.sort(key=lambda id: (id not in progress, sign * progress.get(id, 0.0), sign * id))
    part = experiments_span(window, len(ids))
    return IdPage(ids[part.start : part.end], part)


@router.get("/experiments/{experiment_id}", ("view", "experiment"), **response_schema(OneExperiment))
async def get(call: Authenticated, experiment_id: int) -> Response:
    """One experiment, with its place in the queue while it has one."""
    answer = {"experiment": await show(call, experiment_id)}
    job_row = (
        None if call.catalogue.experiment(experiment_id).ended_at else await call.peers.job(experiment_id)
    )
    return call.answer(answer | ({"jobSummary": job.summary(job_row)} if job_row else {}))


async def _change(call: UserCall, experiment_id: int, action: Action) -> Response:
    command = ChangeExperiment(experiment_id=experiment_id, action=action, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})


@router.post("/experiments/{experiment_id}/activate", ("control", "experiment"))
async def activate(call: Authenticated, experiment_id: int) -> Response:
    """Activate an experiment."""
    return await _change(call, experiment_id, "activate")


@router.post("/experiments/{experiment_id}/pause", ("control", "experiment"))
async def pause(call: Authenticated, experiment_id: int) -> Response:
    """Pause an experiment. Its trials may save checkpoints first."""
    return await _change(call, experiment_id, "pause")


@router.post("/experiments/{experiment_id}/cancel", ("control", "experiment"))
async def cancel(call: Authenticated, experiment_id: int) -> Response:
    """Cancel an experiment. Its trials may save checkpoints first."""
    return await _change(call, experiment_id, "cancel")


@router.post("/experiments/{experiment_id}/kill", ("control", "experiment"))
async def kill(call: Authenticated, experiment_id: int) -> Response:
    """Kill an experiment immediately."""
    return await _change(call, experiment_id, "kill")


@router.get("/experiments/{experiment_id}/searcher/best_searcher_validation_metric", ("view", "experiment"))
async def best_metric(call: Authenticated, experiment_id: int) -> Response:
    """The best searcher metric so far, or 404 if there is none."""
    best = call.catalogue.experiment(experiment_id).best_metric
    if best is None:
        message = f"experiment '{experiment_id}' has no validation with its searcher metric yet"
        raise Refused(Problem("not_found", message))
    return call.answer({"metric": best})

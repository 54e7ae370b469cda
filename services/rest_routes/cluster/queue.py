"""Resource pools and the job queue (REST spec, section 7)."""

from __future__ import annotations

import time
from typing import Annotated, Any

from starlette.responses import Response
from typing_extensions import TypedDict

from det_contracts import ids, queries
from det_contracts.commands import ChangeJob
from det_contracts.problems import Problem, Refused, invalid, not_found
from services.catalogue.peers import Job
from services.kit import paging
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import QueueUpdate, QueueUpdates
from services.rest_requests.streaming import while_connected
from services.rest_routes.cluster import forecast
from services.rest_routes.present import agent, job, records
from services.rest_routes.present.answers import page_schema, response_schema
from services.submission.config_defaults import DEFAULT_POOL
from services.web.query import NOTHING, Flag, FromQuery, Paged, QueryModel, enum_values
from services.web.routes import Routes

router = Routes()
JOB_STATES = ("QUEUED", "SCHEDULED", "SCHEDULED_BACKFILLED")


class JobsQuery(Paged):
    """Query parameters of a list of jobs."""

    resource_pool: str = ""
    states: Annotated[list[str], enum_values("STATE_", JOB_STATES)] = NOTHING


class PoolsQuery(Paged):
    """Query parameters of a list of pools."""

    unbound: Flag = False


class StatsQuery(QueryModel):
    """Query parameters: the pools."""

    resource_pools: list[str] = NOTHING


@router.get("/resource-pools", ("logged_in", "cluster"))
async def pools(call: Authenticated, query: FromQuery[PoolsQuery]) -> Response:
    """All pools with the counts of their queues, optionally only those bound to no workspace."""
    rows = await call.peers.pools()
    if query.unbound:
        rows = [row for row in rows if row.name not in call.catalogue.state.bindings]
    entries = []
    for row in rows:
        shown = agent.pool(row, call.catalogue.state, default=row.name == DEFAULT_POOL)
        entries.append(shown | {"stats": job.stats(row)})
    page, pagination = paging.cut(entries, query.window)
    return call.answer({"resourcePools": page, "pagination": pagination})


async def _jobs(call: UserCall, query: JobsQuery) -> tuple[list[dict[str, Any]], dict[str, int]]:
    rows = await call.peers.jobs(query.resource_pool or None)
    states = query.states
    wanted = [row for row in rows if not states or row.state in states]
    visibility = call.visibility
    wanted = visibility.filter_visible(lambda row: visibility.includes_experiment(row.experiment_id), wanted)
    # Of all jobs, since the hidden ones take slots as well.
    estimates = await _estimates(call, rows)
    jobs = job.jobs(wanted, call.catalogue.state, **estimates)
    return paging.cut(jobs, query.window)


async def _estimates(call: UserCall, rows: list[Job]) -> dict[str, Any]:
    """Progress and forecast of all jobs, including those that this user may not see."""
    state = call.catalogue.state
    progress = await call.peers.progress(row.experiment_id for row in rows if row.experiment_id > 0)
    standing = forecast.forecast_inputs(rows, state, progress, time.time())
    ends = {
        forecast_input.owner: forecast_input.left_s
        for forecast_input in standing
        if forecast_input.left_s is not None
    }
    pools = await call.peers.pools()
    return {
        "progress": progress,
        "starts": forecast.start_times(standing, pools),
        "ends": ends,
        "never": forecast.unschedulable_jobs(standing, pools),
    }


@router.get("/job-queues", ("view", "listed"), **page_schema("jobs", records.Job))
async def queue(call: Authenticated, query: FromQuery[JobsQuery]) -> Response:
    """The jobs, in queue order."""
    page, pagination = await _jobs(call, query)
    return call.answer({"jobs": page, "pagination": pagination})


@router.get("/job-queues-v2", ("view", "listed"))
async def queue_v2(call: Authenticated, query: FromQuery[JobsQuery]) -> Response:
    """The jobs in queue order, each wrapped in `full`."""
    page, pagination = await _jobs(call, query)
    return call.answer({"jobs": [{"full": entry} for entry in page], "pagination": pagination})


@router.get("/job-queues/stats", ("logged_in", "cluster"))
async def stats(call: Authenticated, query: FromQuery[StatsQuery]) -> Response:
    """The number of waiting and running jobs per pool."""
    wanted = query.resource_pools
    rows = {row.name: row for row in await call.peers.pools()}
    for name in wanted:
        if name not in rows:
            raise not_found("resource pool", name)
    pool_stats = [
        {
            "resourcePool": name,
            "stats": job.stats(row),
            "aggregates": [],
        }
        for name, row in rows.items()
        if not wanted or name in wanted
    ]
    return call.answer({"results": pool_stats})


class QueuePreview(TypedDict):
    """The effects of a queue change; jobs are given by id."""

    starts: list[str]
    leaves: list[str]
    startsIn: float | None


@router.post("/job-queues/preview", ("view", "listed"), reads=True, **response_schema(QueuePreview))
async def preview(call: Authenticated, body: QueueUpdate) -> Response:
    """Preview a change without making it: which jobs would start, and which would be preempted for it.

    `startsIn` is the estimated time until the job would start, in seconds, or null if unknown.
    """
    change = _change(body, call.user.username)
    is_visible = call.visibility.includes_experiment
    if not is_visible(change.experiment_id):
        raise not_found("job", body.job_id)
    effects = await call.peers.query(queries.PreviewChange(change), position=call.catalogue.position)
    rows = {row.experiment_id: row for row in await call.peers.jobs()}
    rest = [row for id, row in rows.items() if id not in effects["order"]]
    ordered = [rows[id] for id in effects["order"] if id in rows]
    estimates = await _estimates(call, [*ordered, *rest])
    return call.answer(
        {
            "starts": [ids.job_id(id) for id in effects["starts"] if is_visible(id)],
            "leaves": [ids.job_id(id) for id in effects["leave"] if is_visible(id)],
            "startsIn": estimates["starts"].get(change.experiment_id),
        }
    )


@router.post("/job-queues", ("control", "body"))
async def update(call: Authenticated, body: QueueUpdates) -> Response:
    """Apply changes in order. Failures are reported together; the other changes stay (scheduling spec, 6)."""
    refusals = []
    async for queue_update in while_connected(call, body.updates):
        try:
            await call.peers.command(_change(queue_update, call.user.username))
        except Refused as refusal:
            refusals.append(refusal.problem)
    if refusals:
        raise Refused(Problem(refusals[0].code, "; ".join(problem.message for problem in refusals)))
    return call.answer({})


def _change(update: QueueUpdate, user: str) -> ChangeJob:
    fields = update.model_dump(exclude_unset=True, exclude={"job_id"})
    if not fields:
        raise invalid(
            f"nothing is asked for job '{update.job_id}': give one of {', '.join(QueueUpdate.CHANGE_FIELDS)}"
        )
    for anchor in ("ahead_of", "behind_of"):
        if anchor in fields:
            fields[anchor] = owner_of(fields[anchor])
    return ChangeJob(experiment_id=owner_of(update.job_id), user=user, **fields)


def owner_of(job_id: str) -> int:
    """The experiment or task of a job. Raises `Refused` (404)."""
    owner = ids.owner_of_job(job_id)
    if owner is None:
        raise not_found("job", job_id)
    return owner

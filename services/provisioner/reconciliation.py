"""One look at one pool: what its engine lists, what the scheduler wants, and the resulting actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from det_contracts.provisioning import ReportWorkers, SeenWorker
from services.provisioner.engines.protocol import Engine, EngineRefused, EngineUnavailable
from services.provisioner.plan import DesiredPool, Plan, plan

MAX_STARTS = 20
"""Maximum number of workers started per look. The next look can use their results."""
MAX_WORKERS_PER_REPORT = 100
"""Maximum number of workers per report, since the scheduler rules on it in one round."""

QueryDesired = Callable[[], Awaitable[DesiredPool]]
SendReport = Callable[[ReportWorkers], Awaitable[object]]


async def reconcile_pool(
    pool: str, engine: Engine, query_desired: QueryDesired, send_report: SendReport
) -> str:
    """Do what the scheduler wants for one pool, and report to it what the engine says.

    Returns why the engine was unavailable, or "". Propagates exceptions of `query_desired` and `send_report`.
    """
    try:
        listed_workers = await engine.list_workers()
    except EngineUnavailable as error:
        await send_report(ReportWorkers(pool=pool, problem=str(error)))
        return str(error)
    # After the engine: a worker that is wanted and not listed has then not been started.
    desired = await query_desired()
    todo = plan(desired, listed_workers)
    reports = {report.worker_id: report for report in todo.report}
    problem = ""
    try:
        await _execute(engine, todo, reports)
    except EngineUnavailable as error:
        problem = str(error)
    changed = list(reports.values())
    if problem != desired.problem and not changed:
        await send_report(ReportWorkers(pool=pool, problem=problem))
    for portion in (
        changed[at : at + MAX_WORKERS_PER_REPORT] for at in range(0, len(changed), MAX_WORKERS_PER_REPORT)
    ):
        await send_report(ReportWorkers(pool=pool, problem=problem, workers=tuple(portion)))
    return problem


async def _execute(engine: Engine, todo: Plan, reports: dict[str, SeenWorker]) -> None:
    # Before the starts, since what is given back may be what the new ones need.
    for worker in todo.stop:
        await engine.stop(worker)
    for worker in todo.forget:
        await engine.forget(worker)
    for id in todo.start[:MAX_STARTS]:
        try:
            reports[id] = SeenWorker(worker_id=id, phase="queued", detail=await engine.start(id))
        except EngineRefused as error:
            reports[id] = SeenWorker(worker_id=id, phase="over", detail=str(error))

"""One look at one pool: what its engine lists, what the scheduler wants, and the resulting actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from det_contracts.provisioning import ReportWorkers, SeenWorker
from services.provisioner.engines.protocol import Engine, EngineAway, EngineRefused
from services.provisioner.plan import Plan, Wish, plan

AT_ONCE = 20
"""Maximum number of workers started per look. The next look can use their results."""
REPORTED_AT_ONCE = 100
"""Maximum number of workers per report, since the scheduler rules on it in one round."""

Ask = Callable[[], Awaitable[Wish]]
Tell = Callable[[ReportWorkers], Awaitable[object]]


async def look_once(pool: str, engine: Engine, ask: Ask, tell: Tell) -> str:
    """Do what the scheduler wants for one pool, and report to it what the engine says.

    Returns why the engine was unavailable, or "". Propagates exceptions of `ask` and `tell`.
    """
    try:
        seen = await engine.look()
    except EngineAway as error:
        await tell(ReportWorkers(pool=pool, problem=str(error)))
        return str(error)
    # After the engine: a worker that is wanted and not listed has then not been started.
    wish = await ask()
    todo = plan(wish, seen)
    reports = {one.worker_id: one for one in todo.report}
    problem = ""
    try:
        await _carry_out(engine, todo, reports)
    except EngineAway as error:
        problem = str(error)
    news = list(reports.values())
    if problem != wish.problem and not news:
        await tell(ReportWorkers(pool=pool, problem=problem))
    for portion in (news[at : at + REPORTED_AT_ONCE] for at in range(0, len(news), REPORTED_AT_ONCE)):
        await tell(ReportWorkers(pool=pool, problem=problem, workers=tuple(portion)))
    return problem


async def _carry_out(engine: Engine, todo: Plan, reports: dict[str, SeenWorker]) -> None:
    for one in todo.stop:
        await engine.stop(one)
    for one in todo.forget:
        await engine.forget(one)
    for id in todo.start[:AT_ONCE]:
        try:
            reports[id] = SeenWorker(worker_id=id, phase="queued", detail=await engine.start(id))
        except EngineRefused as error:
            reports[id] = SeenWorker(worker_id=id, phase="over", detail=str(error))

"""One look at one pool: what its engine lists, what the scheduler wants, and what follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from det_contracts.provisioning import ReportWorkers, SeenWorker
from services.provisioner.engines.protocol import Engine, EngineAway, EngineRefused
from services.provisioner.plan import Plan, Wish, plan

AT_ONCE = 20
"""Workers that one look has started: with what they come to the next look knows more."""
REPORTED_AT_ONCE = 100
"""Workers that one report speaks of: the scheduler rules on it in one round."""

Ask = Callable[[], Awaitable[Wish]]
Tell = Callable[[ReportWorkers], Awaitable[object]]


async def look_once(pool: str, engine: Engine, ask: Ask, tell: Tell) -> str:
    """Have done what the scheduler wants of one pool, and tell it what the engine says.

    Returns why the engine could not be asked, empty where it could. Raises what `ask` and `tell` raise.
    """
    try:
        seen = await engine.look()
    except EngineAway as error:
        await tell(ReportWorkers(pool=pool, problem=str(error)))
        return str(error)
    # After the engine: what was wanted by then and is not listed has not been started.
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

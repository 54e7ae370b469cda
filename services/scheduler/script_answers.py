"""Answers waiting scripts (whether to exit) and workers (which worker has their id)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nats.aio.msg import Msg

from det_contracts.script_queries import AskLeave, Holder, Leave
from services.kit.runner import Runner
from services.kit.script_requests import RecordWaiters, ScriptHandler
from services.scheduler.domain import State


def leave_answer(state: State, trial_id: int, ask: AskLeave) -> Leave | None:
    """Whether a run of the trial should exit. None if that is not new, or the run is not (yet) known."""
    allocation = state.allocations.get(ask.allocation_id)
    # It waits as if there were no news: this replica may not have read of the run yet.
    if allocation is None or allocation.trial_id != trial_id:
        return None
    answer = Leave(allocation.asked_to_leave)
    # Never back from "leave" to "stay": a replica that is behind must not take the request back
    # (decision 27).
    return answer if ask.seen is None or (answer.leave and not ask.seen.leave) else None


def leave_handler(runner: Runner[State], news: RecordWaiters) -> ScriptHandler:
    """Return the handler for scripts that ask whether to exit."""

    async def answer(trial_id: int, ask: AskLeave) -> Leave | None:
        key = ("allocations", ask.allocation_id)
        return await news.wait_until(key, lambda: leave_answer(runner.state, trial_id, ask), ask.wait_s)

    return answer


def holder_answer(state: State, worker_id: str) -> Holder | None:
    """Return which worker has an id, or had it last."""
    worker = state.workers.get(worker_id)
    if worker is None:
        return None
    return Holder(worker.presence == "here", worker.instance, worker.host, worker.address)


def holder_handler(runner: Runner[State]) -> Callable[[Msg], Awaitable[tuple[int, Any]]]:
    """Return the handler for workers that ask whether their id is free."""

    async def answer(message: Msg) -> tuple[int, Any]:
        return 0, holder_answer(runner.state, message.subject.split(".")[2])

    return answer

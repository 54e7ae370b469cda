"""What the scheduler tells scripts that wait: whether to leave; and workers: who has their id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nats.aio.msg import Msg

from det_contracts.news import AskLeave, Holder, Leave
from services.kit.runner import Runner
from services.kit.script_questions import News, Say
from services.scheduler.domain import State


def leave(state: State, trial_id: int, ask: AskLeave) -> Leave | None:
    """Whether a run of the trial is to leave; None where that is nothing new, or the run is not known
    (yet)."""
    known = state.allocations.get(ask.allocation_id)
    if known is None or known.trial_id != trial_id:
        return None
    found = Leave(known.asked_to_leave)
    return found if ask.seen is None or (found.leave and not ask.seen.leave) else None


def say_leave(runner: Runner[State], news: News) -> Say:
    """Answers whoever asks whether to leave."""

    async def say(trial_id: int, ask: AskLeave) -> Leave | None:
        key = ("allocations", ask.allocation_id)
        return await news.next(key, lambda: leave(runner.state, trial_id, ask), ask.wait_s)

    return say


def holder(state: State, worker_id: str) -> Holder | None:
    """Who has a worker's id, or had it last."""
    known = state.workers.get(worker_id)
    if known is None:
        return None
    return Holder(known.presence == "here", known.instance, known.host, known.address)


def say_holder(runner: Runner[State]) -> Callable[[Msg], Awaitable[tuple[int, Any]]]:
    """Answers workers that want to know whether their id is free."""

    async def say(message: Msg) -> tuple[int, Any]:
        return 0, holder(runner.state, message.subject.split(".")[2])

    return say

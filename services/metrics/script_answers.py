"""Answers waiting scripts: which of their reports were refused."""

from __future__ import annotations

from det_contracts.script_queries import AskRefusals, Refusals
from services.kit.bus import NotOurs
from services.kit.runner import Runner
from services.kit.script_requests import RecordWaiters, ScriptHandler
from services.metrics.domain import State, shard_of_trial


def unseen_refusals(state: State, trial_id: int, request: AskRefusals) -> Refusals | None:
    """The refusals of a run that its script has not seen; None if there are none."""
    trial = state.trials.get(trial_id)
    newest = request.seen.newest if request.seen is not None else 0
    mine = (
        [refusal for refusal in trial.refusals if refusal.run == request.run and refusal.number > newest]
        if trial
        else []
    )
    if not mine:
        return Refusals() if request.seen is None else None
    return Refusals(mine[-1].number, tuple(refusal.message for refusal in mine))


def refusals_handler(runner: Runner[State], news: RecordWaiters, shard: int) -> ScriptHandler:
    """Return the handler for scripts that ask for refusals. Each shard hears all and answers its own."""

    async def answer(trial_id: int, request: AskRefusals) -> Refusals | None:
        if shard_of_trial(runner.state, trial_id) != shard:
            raise NotOurs
        return await news.wait_until(
            ("trials", trial_id), lambda: unseen_refusals(runner.state, trial_id, request), request.wait_s
        )

    return answer

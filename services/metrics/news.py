"""Answers waiting scripts: which of their reports were refused."""

from __future__ import annotations

from det_contracts.news import AskRefusals, Refusals
from services.kit.runner import Runner
from services.kit.script_questions import News, Say
from services.metrics.domain import State


def refusals(state: State, trial_id: int, ask: AskRefusals) -> Refusals | None:
    """The refusals of a run that its script has not seen; None if there are none."""
    known = state.trials.get(trial_id)
    seen = ask.seen.newest if ask.seen is not None else 0
    mine = [one for one in known.refusals if one.run == ask.run and one.number > seen] if known else []
    if not mine:
        return Refusals() if ask.seen is None else None
    return Refusals(mine[-1].number, tuple(one.told for one in mine))


def say_refusals(runner: Runner[State], news: News) -> Say:
    """Return the handler for scripts that ask for refusals."""

    async def say(trial_id: int, ask: AskRefusals) -> Refusals | None:
        return await news.next(
            ("trials", trial_id), lambda: refusals(runner.state, trial_id, ask), ask.wait_s
        )

    return say

"""Answers scripts: their operations, and what other services know about the trial's own experiment.

The searcher knows which experiment a trial belongs to, regardless of what a script claims. So questions to
other services go through it, and it asks only about that experiment.
"""

from __future__ import annotations

from typing import Any

from det_contracts.news import AskBest, AskMetadata, AskOperations, Operations
from det_contracts.problems import not_found
from det_contracts.queries import BestValidation, Checkpoints
from services.kit.bus import Asker
from services.kit.runner import Runner
from services.kit.script_questions import News, Say
from services.searcher.domain import State, Trial


def operations(state: State, trial_id: int, ask: AskOperations) -> Operations | None:
    """What a run has not been told yet; None if there is nothing new or the run is not known yet."""
    known = state.trials.get(trial_id)
    if known is None or known.run < ask.run:
        return None
    if known.run > ask.run:
        return None if ask.seen is not None and ask.seen.over else Operations(over=True)
    if known.announced_seq != known.seq:
        # The next operation is about to be announced.
        return None
    found = Operations(known.seq, known.length, known.idled_seq)
    seen = ask.seen
    return found if seen is None or found.seq > seen.seq or found.idled > seen.idled else None


def say_operations(runner: Runner[State], news: News) -> Say:
    """Return the handler for scripts that ask for operations."""

    async def say(trial_id: int, ask: AskOperations) -> Operations | None:
        key = ("trials", trial_id)
        return await news.next(key, lambda: operations(runner.state, trial_id, ask), ask.wait_s)

    return say


def say_best(runner: Runner[State], asker: Asker) -> Say:
    """Return the handler for scripts that ask for the best validation."""

    async def say(trial_id: int, ask: AskBest) -> Any:
        trial = _known(runner.state, trial_id)
        query = BestValidation(trial.experiment_id, ask.smaller_is_better)
        return (await asker.query(query)).value

    return say


def say_metadata(runner: Runner[State], asker: Asker) -> Say:
    """Return the handler for scripts that ask for a checkpoint's metadata."""

    async def say(trial_id: int, ask: AskMetadata) -> Any:
        trial = _known(runner.state, trial_id)
        rows = (await asker.query(Checkpoints(uuids=[ask.uuid]))).value
        experiment = runner.state.experiments.get(trial.experiment_id)
        given = {trial.source, trial.checkpoint, experiment.source_checkpoint if experiment else None}
        mine = [one for one in rows if one["experiment_id"] == trial.experiment_id or one["uuid"] in given]
        return mine[0]["metadata"] if mine else None

    return say


def _known(state: State, trial_id: int) -> Trial:
    known = state.trials.get(trial_id)
    if known is None:
        raise not_found("trial", trial_id)
    return known

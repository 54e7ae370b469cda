"""Answers scripts: their operations, and what other services know about the trial's own experiment.

The searcher knows which experiment a trial belongs to, regardless of what a script claims. So questions to
other services go through it, and it asks only about that experiment.

They answer as of what the script has stored before it asked. If they do not get there in time, they tell what
they know: a script should not fail because a service is behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from det_contracts import subjects
from det_contracts.problems import Refused, not_found
from det_contracts.queries import BestValidation, Checkpoints
from det_contracts.script_queries import AskBest, AskMetadata, AskOperations, Operations
from services.kit.bus import BusClient
from services.kit.log import Log
from services.kit.runner import Runner
from services.kit.script_requests import RecordWaiters, ScriptHandler
from services.searcher.domain import State, Trial

OWN_WRITES_S = 5.0
"""How long in seconds a script waits for an answer that knows what it has stored; below its own patience."""


def new_operations(state: State, trial_id: int, request: AskOperations) -> Operations | None:
    """What a run has not been told yet; None if there is nothing new or the run is not known yet."""
    trial = state.trials.get(trial_id)
    # This replica may be behind. The script waits, and asks again, perhaps another replica.
    if trial is None or trial.run < request.run:
        return None
    # Told once and then never again: a superseded run that goes on asking gets no operations of the run that
    # replaced it.
    if trial.run > request.run:
        return None if request.seen is not None and request.seen.over else Operations(over=True)
    if trial.announced_seq != trial.seq:
        # The next operation is about to be announced.
        return None
    operations = Operations(trial.seq, trial.length, trial.idled_seq)
    newest = request.seen
    return (
        operations
        if newest is None or operations.seq > newest.seq or operations.idled > newest.idled
        else None
    )


def operations_handler(runner: Runner[State], news: RecordWaiters) -> ScriptHandler:
    """Return the handler for scripts that ask for operations."""

    async def answer(trial_id: int, request: AskOperations) -> Operations | None:
        key = ("trials", trial_id)
        return await news.wait_until(
            key, lambda: new_operations(runner.state, trial_id, request), request.wait_s
        )

    return answer


async def _query(
    bus_client: BusClient, query: Any, stream: str, position: Callable[[], Awaitable[int]]
) -> Any:
    """Query an owner that has read a stream up to a position, or what it knows if that takes too long."""
    try:
        async with asyncio.timeout(OWN_WRITES_S):
            min_position = await position()
            return (await bus_client.query(query, min_position=min_position, stream=stream)).value
    except (Refused, TimeoutError):
        return (await bus_client.query(query)).value


def best_validation_handler(runner: Runner[State], bus_client: BusClient, journal: Log) -> ScriptHandler:
    """Return the handler for scripts that ask for the best validation."""

    async def answer(trial_id: int, request: AskBest) -> Any:
        trial = _get_trial(runner.state, trial_id)
        query = BestValidation(trial.experiment_id, request.smaller_is_better)

        async def newest_report() -> int:
            newest = await journal.last(subjects.reports(trial_id))
            return newest.position if newest else 0

        return await _query(bus_client, query, subjects.REPORTS, newest_report)

    return answer


def checkpoint_metadata_handler(runner: Runner[State], bus_client: BusClient, journal: Log) -> ScriptHandler:
    """Return the handler for scripts that ask for a checkpoint's metadata."""

    async def end() -> int:
        # What it stated is in the inbox, and what it changed by the REST API in the log.
        await runner.wait_for_position(await journal.end(subjects.WITNESS, after=0), stream=subjects.WITNESS)
        return await journal.end(subjects.CONTROL, after=runner.positions[subjects.CONTROL])

    async def answer(trial_id: int, request: AskMetadata) -> Any:
        trial = _get_trial(runner.state, trial_id)
        rows = await _query(bus_client, Checkpoints(uuids=[request.uuid]), subjects.CONTROL, end)
        experiment = runner.state.experiments.get(trial.experiment_id)
        # Not by the checkpoints that the trial names: its script may say that it has stored another's.
        source = experiment.source_checkpoint if experiment else None
        own_checkpoints = [
            checkpoint
            for checkpoint in rows
            if checkpoint["experiment_id"] == trial.experiment_id or checkpoint["uuid"] == source
        ]
        return own_checkpoints[0]["metadata"] if own_checkpoints else None

    return answer


def _get_trial(state: State, trial_id: int) -> Trial:
    trial = state.trials.get(trial_id)
    if trial is None:
        raise not_found("trial", trial_id)
    return trial

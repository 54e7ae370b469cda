"""Loads records that are not in memory before a request looks at them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from det_contracts.ids import allocation_id
from services.catalogue import listing
from services.catalogue.domain import State
from services.kit.database import Database
from services.kit.rules import Key
from services.kit.runner import Runner


class EvictedRecords:
    """Ended experiments that were paged out to the database."""

    def __init__(self, runner: Runner[State], database: Database) -> None:
        self._runner = runner
        self._database = database

    async def load(self, keys: Iterable[Key]) -> None:
        """Load records, each with all records of its experiment, without blocking other requests."""
        if self._runner.pager is not None:
            await self._runner.pager.fetch(keys)

    async def fetch_trials(self, ids: Iterable[int]) -> State:
        """Return a separate state with some trials, their runs and the checkpoints of their best validations.

        Nothing else of experiments that are paged out is read, and none of it stays in memory.
        """
        trials = await self._fetch("trials", ids)
        best_steps = {id: trial.best.steps for id, trial in trials.items() if trial.best is not None}
        checkpoint_ids = await self._database.read(lambda c: listing.checkpoints_at_steps(c, best_steps))
        # By number, because the index of runs would load the whole experiment.
        runs = [
            allocation_id(trial.task_id, run) for trial in trials.values() for run in range(1, trial.run + 1)
        ]
        checkpoints, allocations = (
            await self._fetch("checkpoints", checkpoint_ids),
            await self._fetch("allocations", runs),
        )
        # The experiment may have been deleted meanwhile.
        experiments = self._runner.state.experiments
        trials = {id: trial for id, trial in trials.items() if trial.experiment_id in experiments}
        return State(
            experiments={trial.experiment_id: experiments[trial.experiment_id] for trial in trials.values()},
            trials=trials,
            checkpoints={
                uuid: checkpoint for uuid, checkpoint in checkpoints.items() if checkpoint.trial_id in trials
            },
            allocations=allocations,
        )

    async def _fetch(self, table: str, ids: Iterable[Any]) -> dict[Any, Any]:
        if self._runner.pager is not None:
            return {
                id: record
                for (_, id), record in (await self._runner.pager.peek((table, id) for id in ids)).items()
            }
        records = getattr(self._runner.state, table)
        return {id: records[id] for id in ids if id in records}

    async def fetch_trial_ids(self, experiment_ids: Iterable[int]) -> dict[int, list[int]]:
        """The trials of some experiments. For experiments that are paged out, only the ids are read."""
        state, pager = self._runner.state, self._runner.pager
        trial_ids, evicted = dict[int, list[int]](), list[int]()
        for id in experiment_ids:
            experiment = state.experiments.get(id)
            if experiment is None or not experiment.trials:
                trial_ids[id] = []
            elif pager is None or pager.is_loaded(str(id)):
                trial_ids[id] = list(state.trials_of.ids(id))
            else:
                evicted.append(id)
        # Only saved experiments are paged out, so the tables are complete.
        return trial_ids | (
            await self._database.read(lambda c: listing.trial_ids(c, evicted)) if evicted else {}
        )

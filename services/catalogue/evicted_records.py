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
        best_steps = {id: one.best.steps for id, one in trials.items() if one.best is not None}
        checkpoint_ids = await self._database.read(lambda c: listing.checkpoints_at_steps(c, best_steps))
        # By number, because the index of runs would load the whole experiment.
        runs = [allocation_id(one.task_id, run) for one in trials.values() for run in range(1, one.run + 1)]
        checkpoints, allocations = (
            await self._fetch("checkpoints", checkpoint_ids),
            await self._fetch("allocations", runs),
        )
        # The experiment may have been deleted meanwhile.
        experiments = self._runner.state.experiments
        trials = {id: one for id, one in trials.items() if one.experiment_id in experiments}
        return State(
            experiments={one.experiment_id: experiments[one.experiment_id] for one in trials.values()},
            trials=trials,
            checkpoints={uuid: one for uuid, one in checkpoints.items() if one.trial_id in trials},
            allocations=allocations,
        )

    async def _fetch(self, table: str, ids: Iterable[Any]) -> dict[Any, Any]:
        if self._runner.pager is not None:
            return {
                id: one for (_, id), one in (await self._runner.pager.peek((table, id) for id in ids)).items()
            }
        known = getattr(self._runner.state, table)
        return {id: known[id] for id in ids if id in known}

    async def fetch_trial_ids(self, experiment_ids: Iterable[int]) -> dict[int, list[int]]:
        """The trials of some experiments. For experiments that are paged out, only the ids are read."""
        state, pager = self._runner.state, self._runner.pager
        found, evicted = dict[int, list[int]](), list[int]()
        for id in experiment_ids:
            known = state.experiments.get(id)
            if known is None or not known.trials:
                found[id] = []
            elif pager is None or pager.is_loaded(str(id)):
                found[id] = list(state.trials_of.ids(id))
            else:
                evicted.append(id)
        # Only saved experiments are paged out, so the tables are complete.
        return found | (await self._database.read(lambda c: listing.trial_ids(c, evicted)) if evicted else {})

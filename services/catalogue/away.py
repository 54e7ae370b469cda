"""Loads records that are not in memory before a request looks at them."""

from __future__ import annotations

from collections.abc import Iterable

from services.catalogue import listing
from services.catalogue.domain import State
from services.kit.database import Database
from services.kit.rules import Key
from services.kit.runner import Runner


class Away:
    """Ended experiments that were paged out to the database."""

    def __init__(self, runner: Runner[State], database: Database) -> None:
        self._runner = runner
        self._database = database

    async def bring(self, keys: Iterable[Key]) -> None:
        """Load records, each with all records of its experiment, without blocking other requests."""
        if self._runner.pager is not None:
            await self._runner.pager.fetch(keys)

    async def trial_ids(self, experiment_ids: Iterable[int]) -> dict[int, list[int]]:
        """The trials of some experiments. For experiments that are paged out, only the ids are read."""
        state, pager = self._runner.state, self._runner.pager
        found, away = dict[int, list[int]](), list[int]()
        for id in experiment_ids:
            known = state.experiments.get(id)
            if known is None or not known.trials:
                found[id] = []
            elif pager is None or pager.is_loaded(str(id)):
                found[id] = list(state.trials_of.ids(id))
            else:
                away.append(id)
        # Only saved experiments are paged out, so the tables are complete.
        return found | (await self._database.read(lambda c: listing.trial_ids(c, away)) if away else {})

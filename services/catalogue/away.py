"""What of the catalogue is not in the memory, and how a request has it there before anybody looks."""

from __future__ import annotations

from collections.abc import Iterable

from services.catalogue import listing
from services.catalogue.domain import State
from services.kit.database import Database
from services.kit.rules import Key
from services.kit.runner import Runner


class Away:
    """Experiments that are over, as they lie in the database."""

    def __init__(self, runner: Runner[State], database: Database) -> None:
        self._runner = runner
        self._database = database

    async def bring(self, keys: Iterable[Key]) -> None:
        """Have records loaded, each with all of its experiment, while others go on."""
        if self._runner.pager is not None:
            await self._runner.pager.fetch(keys)

    async def trial_ids(self, experiment_ids: Iterable[int]) -> dict[int, list[int]]:
        """The trials of some experiments; of those that are away no more than these is read."""
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
        # Nothing has left that was not saved.
        return found | (await self._database.read(lambda c: listing.trial_ids(c, away)) if away else {})

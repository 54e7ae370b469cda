"""The gateway's read side: records folded from the log, and lists of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.problems import Refused, not_found
from services.catalogue.away import Away
from services.catalogue.columns.values import Columns
from services.catalogue.domain import Checkpoint, Experiment, State, Submission, Trial
from services.catalogue.newest import Newest
from services.catalogue.waiting import Fact, Waiting
from services.kit.database import Database
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver

T = TypeVar("T")
BEHIND_S = 5.0
"""How long an answer waits for a replica that is behind, before it shows what is known here."""


class Catalogue:
    """The read side: `state` holds records by id, and `read` reads lists."""

    def __init__(
        self, runner: Runner[State], saver: DatabaseSaver, database: Database, newest: Newest
    ) -> None:
        self._runner = runner
        self._saver = saver
        self._database = database
        self._newest = newest
        self.columns = Columns()
        self.away = Away(runner, database)
        self.waiting = Waiting(lambda: runner.state)
        saver.watch(self.columns.note)
        saver.watch(self.waiting.note)

    @property
    def state(self) -> State:
        """The current folded state. It may change at every await."""
        return self._runner.state

    @property
    def position(self) -> int:
        """The position in CONTROL up to which events are folded."""
        return self._runner.positions[subjects.CONTROL]

    async def catch_up(self) -> bool:
        """Wait until records include everything that any replica has acknowledged so far.

        Returns whether they do. While the broker does not answer, nothing new is acknowledged. A replica that
        stays behind for longer than `BEHIND_S`, which its health page reports, answers with what it knows, so
        that the cluster can still be inspected.
        """
        end = await self._newest.position()
        try:
            await self._runner.reach(end, within_s=BEHIND_S)
        except Refused:
            return False
        return end > 0

    async def reach(self, position: int) -> None:
        """Wait until records and lists include CONTROL up to `position`. Raises `Refused` after a timeout."""
        await self._saver.reach(position)

    async def reach_stated(self, position: int) -> None:
        """Wait until records and lists include WITNESS up to `position`. Raises `Refused` after a timeout."""
        await self._runner.reach(position, stream=subjects.WITNESS)
        await self._saver.reach(self.position)

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Read lists in a database thread. They are consistent with the records."""
        await self._saver.reach(self.position)
        found, position = await self._database.read(lambda c: (work(c), self._saver.stored(c)))
        # Another gateway that shares the database may be ahead of this one.
        await self._runner.reach(position)
        return found

    async def until(self, fact: Fact) -> None:
        """Wait until a fact holds, checked whenever one of its records is folded."""
        await self.waiting.until(fact)

    def experiment(self, id: int) -> Experiment:
        """The experiment with this id. Raises `Refused` (not found)."""
        return _get(self.state.experiments, "experiment", id)

    def submission(self, id: int) -> Submission:
        """The submission of an experiment. Raises `Refused` (not found)."""
        return _get(self.state.submissions, "experiment", id)

    def trial(self, id: int) -> Trial:
        """The trial with this id. Raises `Refused` (not found)."""
        return _get(self.state.trials, "trial", id)

    def trial_of_task(self, task_id: str) -> Trial | None:
        """The trial of a task; None for other kinds of tasks."""
        id = self.state.task_trials.get(task_id)
        return self.state.trials[id] if id is not None else None

    def checkpoint(self, uuid: str) -> Checkpoint:
        """The checkpoint with this id. Raises `Refused` (not found)."""
        return _get(self.state.checkpoints, "checkpoint", uuid)


K = TypeVar("K")
R = TypeVar("R")


def _get(records: dict[K, R], kind: str, key: K) -> R:
    try:
        return records[key]
    except KeyError:
        raise not_found(kind, key) from None

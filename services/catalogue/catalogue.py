"""The gateway's read side: records folded from the log, and lists of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.problems import Refused, not_found
from services.catalogue.columns.held import HeldNames, OrderedIds
from services.catalogue.columns.values import ColumnCache, hyperparameters
from services.catalogue.domain import Checkpoint, Experiment, State, Submission, Trial
from services.catalogue.evicted_records import EvictedRecords
from services.catalogue.log_end import LogEnd
from services.catalogue.waiters import Fact, Waiters
from services.kit.database import Database
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver

T = TypeVar("T")
CATCH_UP_TIMEOUT_S = 5.0
"""How long an answer waits for a replica that is behind, before it shows what is known here."""


class Catalogue:
    """The read side: `state` holds records by id, and `read` reads lists."""

    def __init__(
        self, runner: Runner[State], saver: DatabaseSaver, database: Database, log_end: LogEnd
    ) -> None:
        self._runner = runner
        self._saver = saver
        self._database = database
        self._log_end = log_end
        self.columns = ColumnCache()
        self.evicted = EvictedRecords(runner, database)
        self.waiters = Waiters(lambda: runner.state, lambda: runner.stream_positions.is_behind)
        self.experiment_ids = OrderedIds()
        self.labels = HeldNames(lambda experiment: experiment.labels)
        self.hyperparameters = HeldNames(hyperparameters)
        for cache in (self.columns, self.experiment_ids, self.labels, self.hyperparameters):
            saver.watch(cache.on_records_changed, cache.on_reload)
        saver.watch(self.waiters.on_records_changed, self.waiters.on_reload)

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
        stays behind for longer than `CATCH_UP_TIMEOUT_S`, which its health page reports, answers with what
        it knows, so that the cluster can still be inspected.
        """
        # One replica may acknowledge a command and another answer the client's next request: without this the
        # client would not find what it has just created.
        end = await self._log_end.position()
        try:
            await self._runner.wait_for_position(end, within_s=CATCH_UP_TIMEOUT_S)
        except Refused:
            return False
        # The end is 0 only while the broker does not answer: nobody can say then how far behind this replica
        # is.
        return end > 0

    async def wait_for_position(self, position: int) -> None:
        """Wait until records and lists include CONTROL up to `position`. Raises `Refused` after a timeout."""
        await self._saver.wait_for_position(position)

    async def wait_for_witness(self, position: int) -> None:
        """Wait until records and lists include WITNESS up to `position`. Raises `Refused` after a timeout."""
        await self._runner.wait_for_position(position, stream=subjects.WITNESS)
        await self._saver.wait_for_position(self.position)

    async def read(self, query: Callable[[sa.Connection], T]) -> T:
        """Read lists in a database thread. They are consistent with the records."""
        # Records are folded at once and rows are saved later. A list that is read earlier would miss an
        # experiment whose page the same client has already seen.
        await self._saver.wait_for_position(self.position)
        result, position = await self._database.read(lambda c: (query(c), self._saver.saved_position(c)))
        # Another gateway that shares the database may be ahead of this one.
        await self._runner.wait_for_position(position)
        return result

    async def wait_until(self, fact: Fact) -> None:
        """Wait until a fact holds, checked whenever one of its records is folded."""
        await self.waiters.wait_until(fact)

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

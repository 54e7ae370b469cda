"""Checkpoints of a trial whose training loop is another library's, and whose ranks each write a part."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

from determined import core
from determined.core._outcome import Outcome


class RankCheckpoints:
    """Stores what all ranks wrote, and says whose checkpoint one is. Every rank calls every method."""

    def __init__(self, core_context: core.Context, trial_id: int) -> None:
        self._checkpoint = core_context.checkpoint
        self._distributed = core_context.distributed
        self._trial_id = trial_id

    @property
    def stores(self) -> bool:
        """Whether this rank uploads what the ranks of its node wrote."""
        return self._distributed.local_rank == 0

    def is_own(self, uuid: str) -> bool:
        """Return whether a checkpoint is of this trial: then its steps count, and not its weights alone.

        A checkpoint that names no trial counts as this trial's.

        Args:
            uuid: Id of the checkpoint.

        Raises:
            Exception: The chief could not read the metadata; raised on every rank, so that none waits.
        """
        chief = self._distributed.rank == 0
        named = Outcome(lambda: self._named_trial(uuid)) if chief else None
        return bool(self._distributed.broadcast(named).get() == self._trial_id)

    def _named_trial(self, uuid: str) -> Any:
        return self._checkpoint.get_metadata(uuid).get("trial_id", self._trial_id)

    def store(
        self,
        folder: pathlib.Path,
        steps: int,
        *,
        framework: str | None = None,
        selector: Callable[[str], bool] | None = None,
    ) -> None:
        """Store a folder that the ranks of a node share, once every rank has written its part.

        Args:
            folder: The folder; missing on a node whose ranks wrote nothing, it is made.
            steps: Batches that were trained.
            framework: Name for the metadata of the checkpoint.
            selector: Says of a path in the folder whether it belongs to the checkpoint; by default all do.
        """
        self._distributed.allgather(None)
        metadata: dict[str, Any] = {"steps_completed": steps, "trial_id": self._trial_id}
        if framework is not None:
            metadata["framework"] = framework
        if self.stores:
            folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint.upload(
            folder if self.stores else None, metadata, shard=True, selector=selector if self.stores else None
        )

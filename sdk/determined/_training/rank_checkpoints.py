"""Checkpoints of trials trained by another library's loop, where each rank writes a part."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

from determined import core
from determined.core._outcome import Outcome


class RankCheckpoints:
    """Stores what all ranks wrote, and tells which trial a checkpoint belongs to.

    All ranks call every method.
    """

    def __init__(self, core_context: core.Context, trial_id: int) -> None:
        self._checkpoint = core_context.checkpoint
        self._distributed = core_context.distributed
        self._trial_id = trial_id

    @property
    def stores(self) -> bool:
        """Whether this rank uploads the files written by the ranks of its node."""
        return self._distributed.local_rank == 0

    def is_own(self, uuid: str) -> bool:
        """Return whether a checkpoint belongs to this trial.

        Otherwise only its weights are used, not its step count.

        A checkpoint that names no trial counts as this trial's.

        Args:
            uuid: Id of the checkpoint.

        Raises:
            Exception: If the chief could not read the metadata. Raised on every rank, so that none waits.
        """
        chief = self._distributed.rank == 0
        named = Outcome(lambda: self._named_trial(uuid)) if chief else None
        return bool(self._distributed.broadcast(named).get() == self._trial_id)

    def _named_trial(self, uuid: str) -> Any:
        # Without the entry it counts as this trial's own, which resumes more than its weights.
        return self._checkpoint.get_metadata(uuid).get("trial_id", self._trial_id)

    def store(
        self,
        folder: pathlib.Path,
        steps: int,
        *,
        framework: str | None = None,
        selector: Callable[[str], bool] | None = None,
    ) -> None:
        """Store a directory shared by the ranks of a node, once every rank has written its part.

        Args:
            folder: The directory. It is created if the ranks of a node wrote nothing.
            steps: Number of batches trained.
            framework: Framework name for the checkpoint's metadata.
            selector: Decides for each path in the directory whether it belongs to the checkpoint. Default:
                all.
        """
        # Waits for all ranks: only then are the files of this node complete.
        self._distributed.allgather(None)
        metadata: dict[str, Any] = {"steps_completed": steps, "trial_id": self._trial_id}
        if framework is not None:
            metadata["framework"] = framework
        if self.stores:
            folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint.upload(
            folder if self.stores else None, metadata, shard=True, selector=selector if self.stores else None
        )

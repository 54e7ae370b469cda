"""How the trials, and the logs of tasks, are shared by several metrics processes: the shards.

Growing moves nothing: a stage tells from which trial and experiment on a number of shards applies. What is
earlier stays where it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

KEY = "trials"
"""The key of the only record."""


class Stage(msgspec.Struct, frozen=True, array_like=True):
    """So many shards, for everything from these numbers on."""

    shards: int
    first_trial: int
    first_experiment: int


class Sharing(msgspec.Struct, frozen=True):
    """All stages so far, and which shards follow the newest one."""

    stages: tuple[Stage, ...] = ()
    joined: tuple[int, ...] = ()

    @property
    def shards(self) -> int:
        """The number of shards; 1 if nothing was ever shared."""
        return self.stages[-1].shards if self.stages else 1

    @property
    def is_complete(self) -> bool:
        """Whether all shards follow the newest stage."""
        return not self.stages or len(self.joined) == self.shards

    def shard_of_trial(self, trial_id: int) -> int:
        """The shard of a trial, counted from 1."""
        for stage in reversed(self.stages):
            if trial_id >= stage.first_trial:
                # Trials that run together have numbers in a row, of which each shard gets as many.
                return trial_id % stage.shards + 1
        return 1

    def shard_of_task(self, experiment_id: int, task_id: str) -> int:
        """The shard of a task's log lines. Tasks without an experiment (0) belong to the first shard."""
        # By the experiment and not by the task: a task's id does not say when it began, and it must not move
        # to another shard.
        for stage in reversed(self.stages) if experiment_id else ():
            if experiment_id >= stage.first_experiment:
                return _hash(task_id, stage.shards)
        return 1


def _hash(text: str, shards: int) -> int:
    # Never to be changed: it says where everything lies.
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest) % shards + 1


NOT_SHARED = Sharing()


def sharing_of(sharing: Mapping[str, Sharing]) -> Sharing:
    """The sharing in a state's table."""
    return sharing.get(KEY, NOT_SHARED)

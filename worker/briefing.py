"""What an allocation is to run, read from the log itself: no service need be up for a start."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import msgspec

from det_contracts import codec, subjects
from det_contracts.events.checkpoints import DeletionRequested
from det_contracts.events.scheduler import AllocationAssigned
from det_contracts.events.searcher import Context, ExperimentCreated, RunRequested, TrialCreated
from services.kit.log import Log
from worker.environment import Task, Trial


class NotToBeFound(Exception):
    """The log lacks what the assignment refers to."""


class Briefing(msgspec.Struct, frozen=True):
    """Everything about a run that does not depend on the host."""

    task: Task
    config: dict[str, Any]
    context: Context | None
    deletion: DeletionRequested | None = None


async def read_briefing(journal: Log, assigned: AllocationAssigned) -> Briefing:
    """Gather the facts behind an assignment; raises `NotToBeFound`."""
    if assigned.trial_id is None:
        return await _deletion(journal, assigned)
    experiment, trial, run = await asyncio.gather(
        _last(journal, "searcher.experiment.created", assigned.experiment_id),
        _last(journal, "searcher.trial.created", assigned.trial_id),
        _last(journal, "searcher.trial.run_requested", assigned.trial_id),
    )
    task = _task(assigned, experiment, "TRIAL", run.checkpoint, _trial(experiment, trial, run))
    return Briefing(task, experiment.config, experiment.context)


async def _deletion(journal: Log, assigned: AllocationAssigned) -> Briefing:
    experiment, deletion = await asyncio.gather(
        _last(journal, "searcher.experiment.created", assigned.experiment_id),
        _last(journal, "checkpoints.deletion.requested", assigned.task_id),
    )
    task = _task(assigned, experiment, "CHECKPOINT_GC", None, None)
    return Briefing(task, experiment.config, None, deletion)


async def _last(journal: Log, name: str, key: object) -> Any:
    subject = subjects.control(name, key)
    stored = await journal.last(subject)
    if stored is None:
        raise NotToBeFound(f"the log has nothing on {subject}")
    return codec.decode(stored.body, stored.position).event


def _trial(experiment: ExperimentCreated, trial: TrialCreated, run: RunRequested) -> Trial:
    return Trial(
        trial_id=trial.trial_id,
        experiment_id=experiment.experiment_id,
        run=run.run,
        seed=trial.seed,
        hparams=trial.hparams,
        config=experiment.config,
        steps_completed=run.steps_completed,
    )


def _task(
    assigned: AllocationAssigned,
    experiment: ExperimentCreated,
    kind: str,
    checkpoint: str | None,
    trial: Trial | None,
) -> Task:
    return Task(
        task_id=assigned.task_id,
        allocation_id=assigned.allocation_id,
        resources_id=f"{assigned.allocation_id}-0",
        task_type=kind,
        session_token=secrets.token_hex(16),
        user=experiment.user,
        user_token="",
        latest_checkpoint=checkpoint,
        trial=trial,
    )

"""What an allocation is to run, read from the log itself: no service need be up for a start."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.context import Context
from det_contracts.envelope import Unknown
from det_contracts.events.checkpoints import DeletionRequested
from det_contracts.events.gateway import AgentUser
from det_contracts.events.scheduler import AllocationAssigned, TaskSubmitted
from det_contracts.events.searcher import ExperimentCreated, RunRequested, TrialCreated
from services.kit.log import Log
from services.kit.records import read_event
from worker.environment import Task, Trial


class NotToBeFound(Exception):
    """The log lacks what the assignment refers to."""


class Gang(msgspec.Struct, frozen=True):
    """All nodes of an allocation, by rank."""

    addresses: tuple[str, ...]
    slot_counts: tuple[int, ...]
    rank: int
    """Of this node."""


class Briefing(msgspec.Struct, frozen=True):
    """Everything about a run that does not depend on the host."""

    task: Task
    gang: Gang
    config: dict[str, Any]
    context: Context | None
    deletion: DeletionRequested | None = None
    agent_user: AgentUser | None = None
    """Who it runs as, where its owner is linked with an account."""
    fence_s: float = 0.0
    """Without contact for so long its host ends it; 0: never."""


async def read_briefing(journal: Log, assigned: AllocationAssigned, worker_id: str) -> Briefing:
    """Gather the facts behind a worker's share of an assignment; raises `NotToBeFound`."""
    briefing = await _briefing(journal, assigned, worker_id)
    return msgspec.structs.replace(briefing, fence_s=assigned.fence_s)


async def _briefing(journal: Log, assigned: AllocationAssigned, worker_id: str) -> Briefing:
    gang = await _gang(journal, assigned, worker_id)
    if assigned.kind == "CHECKPOINT_GC":
        return await _deletion(journal, assigned, gang)
    if assigned.kind != "TRIAL":
        return await _own_task(journal, assigned, gang)
    experiment, trial, run = await asyncio.gather(
        _last(journal, "searcher.experiment.created", assigned.experiment_id),
        _last(journal, "searcher.trial.created", assigned.trial_id),
        _last(journal, "searcher.trial.run_requested", assigned.trial_id),
    )
    task = _task(assigned, gang, experiment.user, run.checkpoint, _trial(experiment, trial, run))
    return Briefing(task, gang, experiment.config, experiment.context, agent_user=experiment.agent_user)


async def _gang(journal: Log, assigned: AllocationAssigned, worker_id: str) -> Gang:
    """Every node of an assignment reads the same: addresses are as the workers stated them."""
    parts = sorted(assigned.parts, key=lambda part: part.rank)
    workers = await asyncio.gather(*(_last(journal, "worker.registered", part.worker_id) for part in parts))
    return Gang(
        addresses=tuple(worker.address for worker in workers),
        slot_counts=tuple(len(part.slots) for part in parts),
        rank=[part.worker_id for part in parts].index(worker_id),
    )


async def _deletion(journal: Log, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    experiment, deletion = await asyncio.gather(
        _last(journal, "searcher.experiment.created", assigned.experiment_id),
        _last(journal, "checkpoints.deletion.requested", assigned.task_id),
    )
    task = _task(assigned, gang, experiment.user)
    # As whoever wrote what is to go, and with no more rights.
    return Briefing(task, gang, experiment.config, None, deletion, experiment.agent_user)


async def _own_task(journal: Log, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    submitted: TaskSubmitted = await _last(journal, "scheduler.task.submitted", assigned.task_id)
    task = msgspec.structs.replace(_task(assigned, gang, submitted.user), config=submitted.config)
    return Briefing(task, gang, submitted.config, submitted.context, agent_user=submitted.agent_user)


async def _last(journal: Log, name: str, key: object) -> Any:
    subject = subjects.control(name, key)
    stored = await journal.last(subject)
    if stored is None:
        raise NotToBeFound(f"the log has nothing on {subject}")
    event = read_event(stored).event
    if type(event) is Unknown:
        raise NotToBeFound(f"message {stored.position} on {subject} cannot be read ({event.name})")
    return event


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
    gang: Gang,
    user: str,
    checkpoint: str | None = None,
    trial: Trial | None = None,
) -> Task:
    return Task(
        task_id=assigned.task_id,
        allocation_id=assigned.allocation_id,
        resources_id=f"{assigned.allocation_id}-{gang.rank}",
        task_type=assigned.kind,
        user=user,
        user_token="",
        latest_checkpoint=checkpoint,
        trial=trial,
    )

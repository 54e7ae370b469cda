"""What an allocation is to run, gathered from the log for those that shall run it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.envelope import Unknown
from det_contracts.events.checkpoints import DeletionRequested
from det_contracts.events.scheduler import AllocationAssigned, TaskSubmitted
from det_contracts.events.searcher import ExperimentCreated, RunRequested, TrialCreated
from det_contracts.orders import Briefing, Gang, TrialFacts
from services.kit.log import Log, Stored
from services.kit.records import read_event
from services.scheduler.domain import Allocation, State


class NotToBeFound(Exception):
    """The log lacks what the assignment refers to."""


def gang_of(state: State, allocation: Allocation) -> Gang:
    """Every node of an allocation learns the same of the others: addresses are as the workers stated them."""
    members = sorted(allocation.members, key=lambda member: member.rank)
    addresses = tuple(state.workers[member.worker_id].address for member in members)
    return Gang(addresses, tuple(len(member.slots) for member in members))


async def read_briefing(journal: Log, allocation_id: str, gang: Gang) -> Briefing:
    """Gather the facts behind an assignment; raises `NotToBeFound`."""
    stored = await _newest(journal, "scheduler.allocation.assigned", allocation_id)
    assigned: AllocationAssigned = _event(stored)
    if assigned.kind == "CHECKPOINT_GC":
        found = await _deletion(journal, assigned, gang)
    elif assigned.kind == "TRIAL":
        found = await _run(journal, assigned, gang)
    else:
        found = await _own_task(journal, assigned, gang)
    return msgspec.structs.replace(found, trace=stored.trace)


async def _run(journal: Log, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    found: tuple[ExperimentCreated, TrialCreated, RunRequested] = await asyncio.gather(
        _last(journal, "searcher.experiment.created", assigned.experiment_id),
        _last(journal, "searcher.trial.created", assigned.trial_id),
        _last(journal, "searcher.trial.run_requested", assigned.trial_id),
    )
    experiment, trial, run = found
    return Briefing(
        assigned=assigned,
        user=experiment.user,
        config=experiment.config,
        gang=gang,
        context=experiment.context,
        checkpoint=run.checkpoint,
        agent_user=experiment.agent_user,
        trial=TrialFacts(
            trial_id=trial.trial_id,
            experiment_id=experiment.experiment_id,
            run=run.run,
            seed=trial.seed,
            hparams=trial.hparams,
            steps_completed=run.steps_completed,
        ),
    )


async def _deletion(journal: Log, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    found: tuple[ExperimentCreated, DeletionRequested] = await asyncio.gather(
        _last(journal, "searcher.experiment.created", assigned.experiment_id),
        _last(journal, "checkpoints.deletion.requested", assigned.task_id),
    )
    experiment, deletion = found
    # As whoever wrote what is to go, and with no more rights.
    return Briefing(
        assigned=assigned,
        user=experiment.user,
        config=experiment.config,
        gang=gang,
        deletion=deletion,
        agent_user=experiment.agent_user,
    )


async def _own_task(journal: Log, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    task: TaskSubmitted = await _last(journal, "scheduler.task.submitted", assigned.task_id)
    return Briefing(
        assigned=assigned,
        user=task.user,
        config=task.config,
        gang=gang,
        context=task.context,
        agent_user=task.agent_user,
    )


async def _last(journal: Log, name: str, key: object) -> Any:
    return _event(await _newest(journal, name, key))


async def _newest(journal: Log, name: str, key: object) -> Stored:
    subject = subjects.control(name, key)
    stored = await journal.last(subject)
    if stored is None:
        raise NotToBeFound(f"the log has nothing on {subject}")
    return stored


def _event(stored: Stored) -> Any:
    event = read_event(stored).event
    if type(event) is Unknown:
        raise NotToBeFound(f"message {stored.position} on {stored.subject} cannot be read ({event.name})")
    return event

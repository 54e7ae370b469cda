"""Gathers from the log what an allocation is to run, for the workers that will run it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events.checkpoints import DeletionRequested
from det_contracts.events.scheduler import AllocationAssigned, TaskSubmitted
from det_contracts.events.searcher import ExperimentCreated, RunRequested, TrialCreated
from det_contracts.orders import Briefing, Gang, TrialFacts
from services.kit.bounded_dict import BoundedDict
from services.kit.log import Log, Stored
from services.kit.records import read_event
from services.scheduler.domain import Allocation, State

EXPERIMENTS = 8
"""Number of experiments kept in memory. Their configurations may be large."""
MAX_TRIALS = 200
"""Number of trials, and of runs, kept in memory."""
REMEMBERED = {
    ExperimentCreated: EXPERIMENTS,
    TrialCreated: MAX_TRIALS,
    RunRequested: MAX_TRIALS,
    AllocationAssigned: MAX_TRIALS,
}
"""Kinds of events that are remembered when they are folded, and how many of each."""
PUBLISHED_ONCE = (ExperimentCreated, TrialCreated, AllocationAssigned)


class MissingFact(Exception):
    """The log lacks a fact that the assignment refers to."""


class Fact(NamedTuple):
    """An event, and the span in which it was decided, which is no part of it."""

    event: Any
    trace: str


class Facts:
    """Facts about experiments, trials and runs. Recently folded ones are not read again from the log."""

    def __init__(self, journal: Log, span_of: Callable[[str], str] = lambda _: "") -> None:
        """`span_of` returns the span of a folded event, by its id; "" if there is none."""
        self._journal = journal
        self._span_of = span_of
        self._recent: dict[type, BoundedDict[str, Fact]] = {
            kind: BoundedDict(most) for kind, most in REMEMBERED.items()
        }

    def on_folded(self, events: Iterable[Recorded]) -> None:
        """Remember folded events. They must come in log order."""
        for recorded in events:
            if type(recorded.event) in self._recent:
                self._remember(Fact(recorded.event, self._span_of(recorded.id)))

    def forget(self) -> None:
        """Forget what was folded: where the state is loaded anew, newer facts may be in it unseen."""
        for recent in self._recent.values():
            recent.clear()

    async def last(self, kind: type[Any], key: object) -> Any:
        """Return the newest event of a kind. Raises `MissingFact`."""
        return (await self.last_fact(kind, key)).event

    async def last_fact(self, kind: type[Any], key: object) -> Fact:
        """Return the newest event of a kind, with its span. Raises `MissingFact`."""
        subject = subjects.control(codec.name_of(kind), key)
        recent: Mapping[str, Fact] = self._recent.get(kind, {})
        if subject in recent:
            self._remember(recent[subject])
            return recent[subject]
        stored = await self._journal.last(subject)
        if stored is None:
            raise MissingFact(f"the log has nothing on {subject}")
        fact = Fact(_decode_event(stored), stored.trace)
        # A run's request is not kept: the next run has another on the same subject, and one that was read
        # here and not folded would hide it.
        if type(fact.event) in PUBLISHED_ONCE:
            self._remember(fact)
        return fact

    def _remember(self, fact: Fact) -> None:
        self._recent[type(fact.event)][codec.subject_of(fact.event)] = fact


def gang_of(state: State, allocation: Allocation) -> Gang:
    """Return the nodes of an allocation.

    Every node gets the same list; addresses are as the workers reported them.
    """
    members = sorted(allocation.members, key=lambda member: member.rank)
    addresses = tuple(state.workers[member.worker_id].address for member in members)
    return Gang(addresses, tuple(len(member.slots) for member in members))


async def read_briefing(facts: Facts, allocation_id: str, gang: Gang) -> Briefing:
    """Gather the facts behind an assignment; raises `MissingFact`."""
    assigned, trace = await facts.last_fact(AllocationAssigned, allocation_id)
    if assigned.kind == "CHECKPOINT_GC":
        briefing = await _deletion_briefing(facts, assigned, gang)
    elif assigned.kind == "TRIAL":
        briefing = await _trial_briefing(facts, assigned, gang)
    else:
        briefing = await _task_briefing(facts, assigned, gang)
    return msgspec.structs.replace(briefing, trace=trace)


async def _trial_briefing(facts: Facts, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    events: tuple[ExperimentCreated, TrialCreated, RunRequested] = await asyncio.gather(
        facts.last(ExperimentCreated, assigned.experiment_id),
        facts.last(TrialCreated, assigned.trial_id),
        facts.last(RunRequested, assigned.trial_id),
    )
    experiment, trial, run = events
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


async def _deletion_briefing(facts: Facts, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    events: tuple[ExperimentCreated, DeletionRequested] = await asyncio.gather(
        facts.last(ExperimentCreated, assigned.experiment_id),
        facts.last(DeletionRequested, assigned.task_id),
    )
    experiment, deletion = events
    # Deletion runs as the user who wrote the files, with no additional rights.
    return Briefing(
        assigned=assigned,
        user=experiment.user,
        config=experiment.config,
        gang=gang,
        deletion=deletion,
        agent_user=experiment.agent_user,
    )


async def _task_briefing(facts: Facts, assigned: AllocationAssigned, gang: Gang) -> Briefing:
    task: TaskSubmitted = await facts.last(TaskSubmitted, assigned.task_id)
    return Briefing(
        assigned=assigned,
        user=task.user,
        config=task.config,
        gang=gang,
        context=task.context,
        agent_user=task.agent_user,
    )


def _decode_event(stored: Stored) -> Any:
    event = read_event(stored).event
    if type(event) is Unknown:
        raise MissingFact(f"message {stored.position} on {stored.subject} cannot be read ({event.name})")
    return event

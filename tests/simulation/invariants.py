"""The invariants: one small function each, called before an event becomes history.

A check gets the ledger before the event, the event, and how it was written (`Stated`). It returns None, or a
description of the violation.
"""

from dataclasses import dataclass

from det_contracts import subjects
from det_contracts.envelope import Unknown
from det_contracts.events import Decision, checkpoints, metrics, scheduler, searcher
from det_contracts.events.gateway import DecisionsRetried, EventSkipped
from det_contracts.states import EXPERIMENT_TRANSITIONS, OVER, TRIAL_TRANSITIONS
from tests.simulation.facts import Seen
from tests.simulation.placement_invariants import (
    asks_for_no_more_than_it_may,
    gives_nothing_to_who_is_given_back,
    holds_no_slot_twice,
    is_not_over,
    is_not_there,
    is_waiting,
    keeps_to_quotas,
    nobody_works_there,
    places_only_where_there_is_room,
    places_the_whole_gang,
)
from tests.simulation.verdict import expected
from tests.simulation.violation import Violation

DECIDERS = ("searcher", "scheduler", "metrics", "checkpoints", "gateway")
ONCE = {
    searcher.ExperimentCreated: ("experiment_id",),
    searcher.ExperimentEnded: ("experiment_id",),
    searcher.TrialCreated: ("trial_id",),
    searcher.OperationSet: ("trial_id", "seq"),
    searcher.TrialIdled: ("trial_id", "seq"),
    searcher.RunRequested: ("allocation_id",),
    searcher.StopRequested: ("allocation_id", "kill"),
    searcher.RunEnded: ("trial_id", "run"),
    searcher.TrialEnded: ("trial_id",),
    searcher.TrialOverdue: ("trial_id", "run"),
    scheduler.DeadlinePassed: ("allocation_id",),
    scheduler.TaskSubmitted: ("task_id",),
    scheduler.TaskStopRequested: ("task_id",),
    scheduler.PauseOver: ("trial_id", "due_at"),
    scheduler.AllocationAssigned: ("allocation_id",),
    scheduler.PreemptRequested: ("allocation_id",),
    scheduler.KillRequested: ("allocation_id",),
    scheduler.AllocationEnded: ("allocation_id",),
    scheduler.GivenUp: ("allocation_id", "worker_id"),
    scheduler.WorkerWanted: ("worker_id",),
    scheduler.WorkerReleased: ("worker_id",),
    scheduler.WorkerDismissed: ("worker_id",),
    metrics.Validated: ("trial_id", "number"),
    metrics.ReportRefused: ("trial_id", "number"),
    metrics.Settled: ("trial_id",),
    checkpoints.DeletionRequested: ("task_id",),
    checkpoints.DeletionFinished: ("task_id",),
}


@dataclass
class Stated:
    """How an event got into the log."""

    name: str
    actor: str
    subject: str
    position: int
    cause: str
    batch: str
    """Owner of the decision that heads its batch; empty for a fact."""
    folded: int
    """Position that the decider had folded."""
    knowledge: Seen
    """What the decider knew: what it had folded, and what it had decided in the same batch before."""
    again: bool
    """A fact that the log holds repeatedly."""
    witness: int = 0
    """Position in WITNESS of an admitted fact."""


def owned_by_one(ledger, event, stated):
    """G5: an event's name says who decides it, and no other service writes it."""
    owner, _, _ = stated.name.partition(".")
    if type(event) is Decision:
        return None
    if isinstance(event, EventSkipped | DecisionsRetried) and not stated.batch:
        # Stated on the host, because nobody could be asked.
        return None if stated.actor.startswith("user:") else f"{stated.actor} may not state it"
    if owner in DECIDERS:
        allowed = stated.actor == owner or stated.actor.startswith("user:")
        if stated.batch != owner or not allowed:
            return f"{stated.name} is stated by {stated.actor} in a batch of {stated.batch or 'nobody'}"
        return None
    id = event.worker_id if owner == "worker" else event.trial_id
    if stated.batch not in ("", subjects.INTAKE) or stated.actor != f"{owner}:{id}":
        return f"{stated.name} of {owner} {id} is stated by {stated.actor}"
    return None


def decided_once(ledger, event, stated):
    """G3: nothing is decided twice."""
    names = ONCE.get(type(event))
    if names is None:
        return None
    key = (type(event), *(getattr(event, name) for name in names))
    if key in ledger.decided:
        return f"decided at {ledger.decided[key]} already"
    ledger.decided[key] = stated.position
    return None


def admitted_once_and_in_order(ledger, event, stated):
    """Facts enter the log in the order in which they were acknowledged, each once."""
    # The decision at the head of a batch describes its content.
    decided = ledger.admitted_before if stated.batch else ledger.admitted
    newest = max(decided, next(reversed(ledger.facts), 0))
    if stated.witness and stated.witness <= newest:
        return f"{stated.witness} of WITNESS is admitted behind {newest}"
    if isinstance(event, Decision) and event.owner == subjects.INTAKE and event.to < ledger.admitted:
        return f"the intake was at {ledger.admitted} of WITNESS, and is at {event.to}"
    return None


def has_a_reason(ledger, event, stated):
    """Every decision has a reason."""
    if hasattr(event, "reason") and stated.batch and not event.reason:
        return "it gives no reason"
    return None


# -- experiments and trials


def experiment_moves_along_the_table(ledger, event, stated):
    experiment = ledger.experiments.get(event.experiment_id)
    to = {searcher.ExperimentActivated: "ACTIVE", searcher.ExperimentPaused: "PAUSED"}.get(type(event))
    to = to or getattr(event, "to", None) or getattr(event, "state", "DELETING")
    if to not in EXPERIMENT_TRANSITIONS[experiment.state.now]:
        return f"experiment {experiment.id} cannot go from {experiment.state.now} to {to}"
    return None


def stops_as_the_search_says(ledger, event, stated):
    """A trial that no person stopped was stopped by its search."""
    experiment = ledger.experiments[event.experiment_id]
    if stated.actor != "searcher":
        return None
    wanted = "STOPPING_ERROR" if experiment.fault else experiment.shutdown
    return None if event.to == wanted else f"it goes to {event.to} ({event.reason}), the search says {wanted}"


def ends_without_trials(ledger, event, stated):
    experiment = ledger.experiments[event.experiment_id]
    live = [t.id for t in ledger.trials.values() if t.experiment is experiment and not t.over]
    return f"trials {live} have not ended" if live else None


def announces_what_the_search_says(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    operations = trial.operations()
    newest = operations and operations.now
    if newest != (event.seq, event.length):
        return f"operation {event.seq} of length {event.length}, but the search asks for {newest}"
    return None if event.seq == trial.announced + 1 else f"operation {trial.announced} came before it"


def follows_a_completion(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    last = event.seq - 1 if isinstance(event, searcher.OperationSet) else event.seq
    # The end of a trial closes its operation without an answer.
    if last > 0 and last not in trial.completed and not trial.over:
        return f"operation {last} was not completed"
    return None


def one_live_allocation(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    if trial.live:
        return f"allocation {trial.live} of the trial has not ended"
    if trial.exit is not None:
        return f"run {trial.run} is not judged yet"
    return None if event.run == trial.run + 1 else f"run {event.run} follows run {trial.run}"


def asks_only_while_active(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    states = trial.experiment.state.known_to(stated.knowledge), trial.state.known_to(stated.knowledge)
    if states != ("ACTIVE", "ACTIVE"):
        return f"experiment and trial are {states}"
    return "its operation is complete" if trial.seen_complete(stated.knowledge) else None


def resumes_from_the_newest_checkpoint(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    stored = [c for c in trial.checkpoints if stated.knowledge.has(c[0])]
    if not stored and event.steps_completed != 0:
        return f"it has no checkpoint, but {event.steps_completed} steps"
    if stored and (event.checkpoint, event.steps_completed) != stored[-1][1:]:
        return (
            f"it resumes from {event.checkpoint} at {event.steps_completed}, the newest is {stored[-1][1:]}"
        )
    return None


def trial_moves_along_the_table(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    to = getattr(event, "to", None) or event.state
    if to not in TRIAL_TRANSITIONS[trial.state.now]:
        return f"trial {trial.id} cannot go from {trial.state.now} to {to}"
    return None


def ends_without_a_run(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    return f"allocation {trial.live} has not ended" if trial.live else None


def run_is_judged_by_the_table(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    if trial.exit is None:
        if isinstance(event, searcher.RunEnded):
            return "no run waits for a verdict"
        return None
    state, restarts, early = expected(trial, stated.knowledge)
    if isinstance(event, searcher.RunEnded):
        verdict = (None, event.restarts, None)
    else:
        early_exit = event.early_exit if event.early_exit not in ("ERRORED", "USER_CANCELED") else None
        verdict = (event.state, event.restarts, early_exit)
    wanted = (state, restarts, early)
    return (
        None
        if verdict == wanted
        else f"it says {verdict}, by the table it is {wanted} ({trial.exit.outcome})"
    )


def search_may_tell(ledger, event, stated):
    trial = ledger.trials[event.trial_id]
    wanted = {"ERROR": "ERRORED", "CANCELED": "USER_CANCELED"}.get(event.state)
    if wanted is not None and event.early_exit != wanted:
        return f"trial {trial.id} ends {event.state}, the search is told {event.early_exit}"
    return None


# -- allocations


def counts_tasks_from_one(ledger, event, stated):
    right = len(ledger.tasks) + 1
    return None if event.number == right else f"it has number {event.number}, the next is {right}"


def ends_when_all_parts_are_gone(ledger, event, stated):
    allocation = ledger.allocations[event.allocation_id]
    there = [p.worker_id for p in allocation.parts if not allocation.gone(p.worker_id)]
    return f"{there} still run parts of it" if there else None


def outcome_fits_the_exits(ledger, event, stated):
    allocation = ledger.allocations[event.allocation_id]
    codes = [code for worker_id, code in allocation.exits.items() if worker_id not in allocation.lost]
    right = {
        "succeeded": not allocation.lost and all(code == 0 for code in codes) and bool(allocation.parts),
        "failed": any(code not in (0, None) for code in codes),
        "not_started": None in codes,
        "worker_lost": bool(allocation.lost),
        "killed": allocation.killed < stated.position or not allocation.parts,
    }
    return (
        None
        if right[event.outcome]
        else f"outcome {event.outcome}, but exits {allocation.exits}, lost {allocation.lost}"
    )


def deletes_only_what_nobody_needs(ledger, event, stated):
    for uuid in event.uuids:
        owner = ledger.stored.get(uuid)
        if owner is None or owner.id != event.experiment_id or owner.state.at(stated.folded) not in OVER:
            return f"checkpoint {uuid} is of experiment {owner and owner.id}, {owner and owner.state.now}"
        for since, other in ledger.sources.get(uuid, ()):
            if since <= stated.folded and other is not owner and other.state.at(stated.folded) not in OVER:
                return f"experiment {other.id} starts from checkpoint {uuid}"
    return None


BEFORE = {
    scheduler.WorkerWanted: [asks_for_no_more_than_it_may],
    scheduler.WorkerReleased: [nobody_works_there],
    scheduler.WorkerDismissed: [is_not_there],
    searcher.ExperimentActivated: [experiment_moves_along_the_table],
    searcher.ExperimentPaused: [experiment_moves_along_the_table],
    searcher.ExperimentStopping: [experiment_moves_along_the_table, stops_as_the_search_says],
    searcher.ExperimentEnded: [experiment_moves_along_the_table, ends_without_trials],
    searcher.ExperimentDeleting: [experiment_moves_along_the_table],
    searcher.ExperimentDeleted: [experiment_moves_along_the_table],
    searcher.OperationSet: [announces_what_the_search_says, follows_a_completion],
    searcher.TrialIdled: [follows_a_completion],
    searcher.RunRequested: [one_live_allocation, asks_only_while_active, resumes_from_the_newest_checkpoint],
    searcher.RunEnded: [run_is_judged_by_the_table],
    searcher.TrialStopping: [trial_moves_along_the_table],
    searcher.TrialEnded: [
        trial_moves_along_the_table,
        ends_without_a_run,
        run_is_judged_by_the_table,
        search_may_tell,
    ],
    checkpoints.DeletionRequested: [deletes_only_what_nobody_needs],
    scheduler.TaskSubmitted: [counts_tasks_from_one],
    scheduler.AllocationAssigned: [
        is_waiting,
        holds_no_slot_twice,
        places_the_whole_gang,
        places_only_where_there_is_room,
        keeps_to_quotas,
        gives_nothing_to_who_is_given_back,
    ],
    scheduler.PreemptRequested: [is_not_over],
    scheduler.KillRequested: [is_not_over],
    scheduler.AllocationEnded: [is_not_over, ends_when_all_parts_are_gone, outcome_fits_the_exits],
}
ALWAYS = [owned_by_one, decided_once, has_a_reason, admitted_once_and_in_order]


def check_before(ledger, event, stated):
    """Raise the first `Violation`."""
    if type(event) is Unknown:
        raise Violation("readable", f"{stated.name} cannot be read back")
    for check in (*ALWAYS, *BEFORE.get(type(event), ())):
        wrong = check(ledger, event, stated)
        if wrong:
            raise Violation(check.__name__, wrong, event)

"""Defines the records that belong to an experiment, and when they can be paged out.

They are paged out once the experiment has ended and its reports are judged. The experiment's own record
stays, because lists of all experiments need it. The submission is a root of its own, as many requests need
only that. So is the run of a user's task, which is paged out once the task is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

from det_contracts import ids
from det_contracts.events.scheduler import TaskSubmitted
from det_contracts.events.searcher import TrialCreated
from services.catalogue.domain.indexes import add_to_indexes, remove_from_indexes
from services.catalogue.domain.state import State, validation_key
from services.kit.roots import ALWAYS_LOADED, Key, Roots, get_loaded, loaded_keys, root_by_experiment_id

SUBMISSION = "submission "
TASK = "task "
_trial_root = root_by_experiment_id("trials")


def _submission_root(_: State, id: int) -> str:
    return f"{SUBMISSION}{id}"


def _validation_root(state: State, key: str) -> str | None:
    return _trial_root(state, int(key.partition("@")[0]))


def _allocation_root(_: State, id: str) -> str:
    owner, dot, rest = str(id).partition(".")
    # `7` stands for experiment 7 itself (see `reference_fields`), and a trial's run is `7.REQUEST.1`; that of
    # a user's task is `TASK.1`.
    if owner.isdecimal() and (not rest or "." in rest):
        return owner
    return f"{TASK}{owner}" if dot else ALWAYS_LOADED


def _members(state: State, root: str) -> Iterable[Key]:
    if root.startswith(SUBMISSION):
        yield from loaded_keys(state, int(root.removeprefix(SUBMISSION)), "submissions")
        return
    if root.startswith(TASK):
        yield from loaded_keys(state, ids.allocation_id(root.removeprefix(TASK), 1), "allocations")
        return
    id = int(root)
    yield from (("allocations", run) for run in state.runs_of.ids(id))
    for trial_id in state.trials_of.ids(id):
        yield "trials", trial_id
        yield from (
            ("validations", validation_key(trial_id, at)) for at in state.validation_steps.ids(trial_id)
        )
        yield from (("checkpoints", uuid) for uuid in state.checkpoints_of.ids(trial_id))


def _is_over(state: State, root: str) -> bool:
    if root.startswith(TASK):
        return root.removeprefix(TASK) not in state.tasks
    id = int(root.removeprefix(SUBMISSION))
    experiment = state.experiments.get(id)
    if experiment is None:
        return True
    # A deletion task may still run after the experiment has ended, and its events change checkpoints.
    if experiment.ended_at is None or experiment.state == "DELETING" or state.live_of.first(id) is not None:
        return False
    if root.startswith(SUBMISSION):
        return True
    trials = (get_loaded(state.trials, trial_id) for trial_id in state.trials_of.ids(id))
    # Metrics judges reports after a trial has ended; until then each judgement would load everything again.
    return state.open_trials.first(id) is None and all(
        trial is not None and trial.settled for trial in trials
    )


ROOTS: Roots[State] = Roots(
    root_lookups={
        "submissions": _submission_root,
        "trials": _trial_root,
        "validations": _validation_root,
        "checkpoints": root_by_experiment_id("checkpoints"),
        "allocations": _allocation_root,
    },
    members=_members,
    is_over=_is_over,
    index=add_to_indexes,
    unindex=remove_from_indexes,
    creation_events={
        TrialCreated: lambda event: ("trials", event.trial_id),
        TaskSubmitted: lambda event: ("allocations", ids.allocation_id(event.task_id, 1)),
    },
    reference_fields={
        # Loading any record of an experiment loads all of them, so its id is enough: see `State.load`.
        "experiment_id": "allocations",
        "trial_id": "trials",
        "trial_ids": "trials",
        "allocation_id": "allocations",
        "uuid": "checkpoints",
        "uuids": "checkpoints",
    },
    # The end of an experiment changes no record in either root, so both are checked when it changes.
    affected_roots={"experiments": lambda id: (str(id), f"{SUBMISSION}{id}")},
)

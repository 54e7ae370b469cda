"""The only functions that store or drop indexed records, so that the indexes stay consistent."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from services.catalogue.domain.indexes import open_trial_entry, ranked_trial_entry, ranked_validation_entry
from services.catalogue.domain.small_records import DeletedExperiment, TaskOwner
from services.catalogue.domain.state import (
    Allocation,
    Checkpoint,
    Experiment,
    Gathered,
    Gathering,
    Live,
    Model,
    ModelVersion,
    Share,
    State,
    Trial,
    TrialSource,
    Validation,
    request_key,
    share_key,
    source_key,
    validation_key,
)
from services.kit.rules import Key

replace = msgspec.structs.replace


def put_experiment(state: State, changed: Experiment) -> Iterable[Key]:
    """Store an experiment."""
    previous = state.experiments.get(changed.id)
    hparams_trial_id = hparams_trial(changed)
    if hparams_trial_id != (hparams_trial(previous) if previous else None):
        # The values are copied into the experiment, so that lists show them while its trials are paged out.
        changed = replace(changed, point=_encode_hparams(state, hparams_trial_id))
    state.experiments_in.swap(
        (previous.project_id, previous.id) if previous else None, (changed.project_id, changed.id)
    )
    state.project_of[changed.id] = changed.project_id
    state.experiments[changed.id] = changed
    yield "experiments", changed.id


def hparams_trial(experiment: Experiment) -> int | None:
    """The trial whose hyperparameters represent the experiment: the best, or the only one."""
    return experiment.best_trial or (experiment.first_trial if experiment.trials == 1 else None)


def _encode_hparams(state: State, trial_id: int | None) -> str:
    trial = state.trials.get(trial_id) if trial_id is not None else None
    return msgspec.json.encode(trial.hparams).decode() if trial is not None else ""


def drop_experiment(state: State, id: int) -> Iterable[Key]:
    """Forget an experiment with everything left of it, but the use of slots."""
    for trial_id in list(state.trials_of.ids(id)):
        yield from drop_trial(state, trial_id)
    for allocation_id in list(state.runs_without_trial.ids(id)):
        yield from _drop_run(state, state.allocations[allocation_id])
    experiment = state.experiments.pop(id)
    if state.runs_of.first(id) is not None:
        state.deleted_experiments[id] = DeletedExperiment(
            experiment.user, _workspace(state, experiment), experiment.labels
        )
        yield "deleted_experiments", id
    state.experiments_in.discard(experiment.project_id, id)
    del state.project_of[id]
    state.submissions.pop(id, None)
    yield "experiments", id
    yield "submissions", id


def put_trial(state: State, changed: Trial) -> Iterable[Key]:
    """Store a trial."""
    previous = state.trials.get(changed.id)
    if previous is None:
        # Load the experiment's other records first.
        state.load(changed.experiment_id)
        state.trials_of.add(changed.experiment_id, changed.id)
        state.task_trials[changed.task_id] = changed.id
    state.open_trials.swap(open_trial_entry(previous) if previous else None, open_trial_entry(changed))
    if previous is None or previous.best != changed.best:
        before = ranked_trial_entry(state, previous) if previous else None
        state.ranked_trials.swap(before, ranked_trial_entry(state, changed))
    state.trials[changed.id] = changed
    yield "trials", changed.id


def drop_trial(state: State, id: int) -> Iterable[Key]:
    """Forget a trial with its validations, checkpoints, and runs that held no slots."""
    trial = state.trials[id]
    # Validations and checkpoints go before the trial, because their index entries are computed from its
    # record and from its experiment's.
    for steps in list(state.validation_steps.ids(id)):
        yield from drop_validation(state, state.validations[validation_key(id, steps)])
    for _, number, uuid in list(state.checkpoints_of.scan(id)):
        deleted = state.checkpoints.pop(uuid)
        state.checkpoints_of.discard(id, number, uuid)
        state.checkpoints_at.discard(id, deleted.steps, number, uuid)
        yield "checkpoints", uuid
    # Not from the index of runs: it is by experiment, and one of 100,000 trials would be scanned once per
    # trial.
    for run in range(1, trial.run + 1):
        allocation = state.allocations.get(f"{trial.task_id}.{run}")
        if allocation is not None:
            yield from _drop_run(state, allocation)
    yield from _drop_sources(state, id)
    yield from _remove_trial(state, trial)


def put_source(state: State, changed: TrialSource) -> Iterable[Key]:
    """Store a trial's use of a checkpoint, replacing an earlier report of the same."""
    key = source_key(changed.trial_id, changed.checkpoint)
    if key not in state.sources:
        state.sources_of_trial.add(changed.trial_id, key)
        state.trials_using.add(changed.checkpoint, changed.trial_id)
    state.sources[key] = changed
    yield "sources", key


def _drop_sources(state: State, trial_id: int) -> Iterable[Key]:
    for key in list(state.sources_of_trial.ids(trial_id)):
        state.trials_using.discard(state.sources.pop(key).checkpoint, trial_id)
        state.sources_of_trial.discard(trial_id, key)
        yield "sources", key


def _remove_trial(state: State, trial: Trial) -> Iterable[Key]:
    state.trials_of.discard(trial.experiment_id, trial.id)
    state.task_trials.pop(trial.task_id, None)
    for sorted_index, entry in (
        (state.open_trials, open_trial_entry(trial)),
        (state.ranked_trials, ranked_trial_entry(state, trial)),
    ):
        sorted_index.swap(entry, None)
    del state.trials[trial.id]
    yield "trials", trial.id
    experiment = state.experiments[trial.experiment_id]
    point = "" if hparams_trial(experiment) == trial.id else experiment.point
    yield from put_experiment(state, replace(experiment, trials=experiment.trials - 1, point=point))


def put_validation(state: State, changed: Validation) -> Iterable[Key]:
    """Store a validation, replacing the trial's earlier one at the same step."""
    key = validation_key(changed.trial_id, changed.steps)
    previous = state.validations.get(key)
    state.ranked_validations.swap(
        ranked_validation_entry(state, previous) if previous else None,
        ranked_validation_entry(state, changed),
    )
    before = (previous.trial_id, previous.run, previous.steps) if previous else None
    state.validation_steps.swap(before, (changed.trial_id, changed.run, changed.steps))
    state.validations[key] = changed
    yield "validations", key


def drop_validation(state: State, validation: Validation) -> Iterable[Key]:
    """Forget a validation."""
    key = validation_key(validation.trial_id, validation.steps)
    state.ranked_validations.discard(*ranked_validation_entry(state, validation))
    state.validation_steps.discard(validation.trial_id, validation.run, validation.steps)
    del state.validations[key]
    yield "validations", key


def put_checkpoint(state: State, changed: Checkpoint) -> Iterable[Key]:
    """Store a checkpoint."""
    if changed.uuid not in state.checkpoints:
        state.checkpoints_of.add(changed.trial_id, changed.number, changed.uuid)
        state.checkpoints_at.add(changed.trial_id, changed.steps, changed.number, changed.uuid)
    state.checkpoints[changed.uuid] = changed
    yield "checkpoints", changed.uuid


def open_allocation(state: State, allocation: Allocation) -> Iterable[Key]:
    """Store an allocation that has not ended."""
    if allocation.id not in state.allocations:
        state.runs_of.add(allocation.experiment_id, allocation.id)
        if allocation.trial_id is None:
            state.runs_without_trial.add(allocation.experiment_id, allocation.id)
    if allocation.id not in state.live:
        state.live_of.add(allocation.experiment_id, allocation.id)
    state.allocations[allocation.id] = allocation
    state.live[allocation.id] = Live(allocation.experiment_id)
    yield "allocations", allocation.id
    yield "live", allocation.id


def close_allocation(state: State, ended: Allocation) -> Iterable[Key]:
    """Store an ended allocation, and forget what its members gathered."""
    state.allocations[ended.id] = ended
    yield "allocations", ended.id
    if state.live.pop(ended.id, None) is not None:
        state.live_of.discard(ended.experiment_id, ended.id)
    yield "live", ended.id
    yield from drop_gathering(state, ended.id)


def held_slots(run: Allocation) -> bool:
    """Whether a run has ended and held slots: reports on past use count it, whatever becomes of its task."""
    return bool(run.slots and run.members and run.started_at is not None and run.ended_at is not None)


def _drop_run(state: State, run: Allocation) -> Iterable[Key]:
    """Forget a run with its task, but not that it used slots."""
    if not held_slots(run):
        return drop_allocation(state, run)
    experiment = state.experiments[run.experiment_id]
    state.allocations[run.id] = replace(
        run, task_owner=TaskOwner(experiment.user, _workspace(state, experiment))
    )
    return (("allocations", run.id),)


def _workspace(state: State, experiment: Experiment) -> int:
    project = state.projects.get(experiment.project_id)
    # Only the first project has no record. It is in the first workspace.
    return project.workspace_id if project is not None else 1


def drop_allocation(state: State, allocation: Allocation) -> Iterable[Key]:
    """Forget an allocation."""
    # First, because it may still be live, and have gathered shares.
    yield from close_allocation(state, allocation)
    del state.allocations[allocation.id]
    state.runs_of.discard(allocation.experiment_id, allocation.id)
    state.runs_without_trial.discard(allocation.experiment_id, allocation.id)


def put_share(state: State, allocation_id: str, peers: int, share: Share) -> Iterable[Key]:
    """Store a share of an all-gather.

    Once an all-gather is complete, every member has received the one before it, which is dropped.
    """
    gathering = state.gatherings.get(allocation_id) or Gathering(peers)
    number, size = gathering.joined + 1, len(msgspec.json.encode(share.data))
    state.shares[share_key(allocation_id, number)] = share
    state.joined[request_key(allocation_id, share.request_id)] = number
    yield "shares", share_key(allocation_id, number)
    # Rounds are counted, not named: a member sends a new request id in each round.
    is_complete = number % gathering.peers == 0
    changed = replace(
        gathering,
        joined=number,
        size_bytes=gathering.size_bytes + size,
        round_bytes=0 if is_complete else gathering.round_bytes + size,
        kept_bytes=gathering.kept_bytes + size,
    )
    yield from _store_gathering(state, allocation_id, changed)
    if is_complete:
        yield from _drop_shares(state, allocation_id, number - gathering.peers)


def _drop_shares(state: State, allocation_id: str, last_number: int) -> Iterable[Key]:
    gathering, size = state.gatherings[allocation_id], 0
    for number in range(gathering.kept_from, last_number + 1):
        share = state.shares.pop(share_key(allocation_id, number))
        size += len(msgspec.json.encode(share.data))
        state.joined.pop(request_key(allocation_id, share.request_id), None)
        yield "shares", share_key(allocation_id, number)
    remaining = replace(
        gathering, kept_from=max(gathering.kept_from, last_number + 1), kept_bytes=gathering.kept_bytes - size
    )
    yield from _store_gathering(state, allocation_id, remaining)


def _store_gathering(state: State, allocation_id: str, changed: Gathering) -> Iterable[Key]:
    previous = state.gatherings.get(allocation_id) or Gathering(changed.peers)
    state.gatherings[allocation_id] = changed
    size = state.gathered.get("all", Gathered()).size_bytes
    state.gathered["all"] = Gathered(size + changed.kept_bytes - previous.kept_bytes)
    yield "gatherings", allocation_id
    yield "gathered", "all"


def drop_gathering(state: State, allocation_id: str) -> Iterable[Key]:
    """Forget what the members of an allocation gathered."""
    gathering = state.gatherings.get(allocation_id)
    if gathering is not None:
        yield from _drop_shares(state, allocation_id, gathering.joined)
        del state.gatherings[allocation_id]


def put_model(state: State, changed: Model) -> Iterable[Key]:
    """Store a model."""
    previous = state.models.get(changed.id)
    before = (previous.workspace_id, previous.id) if previous else None
    state.models_in.swap(before, (changed.workspace_id, changed.id))
    state.models[changed.id] = changed
    yield "models", changed.id


def drop_model(state: State, id: int) -> Iterable[Key]:
    """Forget a model with its versions."""
    model = state.models.pop(id, None)
    if model is not None:
        state.models_in.discard(model.workspace_id, id)
        yield "models", id
        for version_id in list(state.versions_of.ids(id)):
            yield from drop_version(state, version_id)


def put_version(state: State, changed: ModelVersion) -> Iterable[Key]:
    """Store a version of a model."""
    if changed.id not in state.versions:
        state.versions_of.add(changed.model_id, changed.number, changed.id)
    state.versions[changed.id] = changed
    yield "versions", changed.id


def drop_version(state: State, id: int) -> Iterable[Key]:
    """Forget a version of a model."""
    version = state.versions.pop(id)
    state.versions_of.discard(version.model_id, version.number, id)
    yield "versions", id

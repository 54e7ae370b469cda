"""The checkpoints service's state. All records are frozen: an event replaces one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.events.checkpoints import ModelSet, VersionSet
from services.checkpoints.retention import Keep
from services.kit.authz.people import People
from services.kit.idempotency import RequestResult, results_by_age
from services.kit.quotas.limits import account_of
from services.kit.quotas.usage import Account, Usage
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys

Key = tuple[str, Any]
CheckpointState = Literal["COMPLETED", "PARTIALLY_DELETED", "DELETED", "ERROR"]
TRIES = 3
"""Number of tasks that try to delete a checkpoint before it becomes ERROR: workers can be lost."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about an experiment that matter for its checkpoints."""

    id: int
    keep: Keep
    smaller_is_better: bool
    source: str | None
    """The checkpoint that its trials started from."""
    unsettled: int = 0
    """Number of trials that are not settled."""
    ended: bool = False
    pool: str = "default"
    deletions: int = 0
    """Number of deletion tasks requested so far."""
    deleting: bool = False
    """All its checkpoints are to be deleted, whatever retention says."""
    ran: bool = False
    """Whether one of its trials has run and may have left event files in the storage."""
    sweeping: bool = False
    """Whether a task is deleting its other files in the storage."""
    sweeps: int = 0
    """Number of such tasks that failed."""
    swept: bool = False
    unmanaged: bool = False
    retains: bool = True
    """Whether retention applies. For an unmanaged experiment only once a person has set how many to keep."""


class Validation(msgspec.Struct, frozen=True):
    """A trial's validation at a number of steps."""

    metric: float | None
    number: int
    """Its place in the order in which validations were accepted, over all trials."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a trial that matter for its checkpoints."""

    id: int
    experiment_id: int
    end: int = 0
    """Position of its last end in the log; 0 before the first."""
    settled: bool = False
    """All validations before that end are known."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of the registry."""

    uuid: str
    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    at: float
    """When it was reported, in seconds since the epoch."""
    order: int
    """Position of the report in the log."""
    state: CheckpointState = "COMPLETED"
    resources: dict[str, int]
    metadata: dict[str, Any]
    steps_completed: int
    going: bool = False
    """Whether a task is deleting it."""
    task: str = ""
    """The deletion task that was requested last."""
    tries: int = 0
    """Number of tasks that were requested to delete it."""
    reason: str = ""
    """Why it was deleted, or could not be."""
    versions: int = 0
    """Number of model versions that refer to it."""

    @property
    def size_bytes(self) -> int:
        """Bytes in the storage.

        A deleted checkpoint has none, though its list of files may stay on record.
        """
        return 0 if self.state == "DELETED" else sum(self.resources.values())


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """A task that deletes checkpoints, until its end is stated."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    globs: tuple[str, ...] | None = None
    sweep: bool = False
    why: str = ""
    outcome: str | None = None
    """How the task's run ended; None if it has not."""
    reason: str = ""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A named series of checkpoints."""

    definition: ModelSet = msgspec.field(name="told")
    numbers: int = 0
    """The highest version number used."""


class Tally(msgspec.Struct, frozen=True):
    """Totals of the checkpoints in one state."""

    count: int = 0
    size_bytes: int = 0


class Origin(msgspec.Struct, frozen=True):
    """The checkpoint that an experiment starts from. Holds even when either has left memory."""

    checkpoint: str
    experiment_id: int = 0
    """The experiment that the checkpoint belongs to; 0 if unknown."""


class Weight(msgspec.Struct, frozen=True):
    """How much an experiment has stored, and the account it is charged to."""

    owner: str
    place: int
    size_bytes: int


class Totals(msgspec.Struct, frozen=True):
    """The highest ids that were assigned."""

    models: int = 0
    versions: int = 0


REGISTERED, STORED, DELETING, DELETED, FAILED = "registered", "there", "going", "gone", "failed"
"""The standings of a checkpoint; see `deletion_status`."""


@dataclass
class State(People):
    """Everything that the checkpoints service folds from the log."""

    experiments: dict[int, Experiment] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    validations: dict[str, Validation] = field(default_factory=dict)
    """By `validation_key`. A settled trial of the cluster keeps only those at steps with a checkpoint."""
    deletions: dict[str, Deletion] = field(default_factory=dict)
    models: dict[int, Model] = field(default_factory=dict)
    versions: dict[int, VersionSet] = field(default_factory=dict)
    creations: dict[str, RequestResult] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    """By checkpoint state."""
    totals: dict[str, Totals] = field(default_factory=dict)
    origins: dict[int, Origin] = field(default_factory=dict)
    """By the experiment that starts from a checkpoint."""
    weights: dict[int, Weight] = field(default_factory=dict)
    """By experiment with stored checkpoints."""
    made_at: SortedKeys = derived()  # noqa: RUF009
    """(time, request id) for every creation"""
    trials_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, trial)"""
    checkpoints_by_status: SortedKeys = derived()  # noqa: RUF009
    """(experiment, standing, order of storing, checkpoint)"""
    stored_by_trial: SortedKeys = derived()  # noqa: RUF009
    """(trial, order of storing, checkpoint)"""
    checkpoint_steps: SortedKeys = derived()  # noqa: RUF009
    """(trial, steps completed, checkpoint)"""
    validation_steps: SortedKeys = derived()  # noqa: RUF009
    """(trial, steps completed)"""
    validations_without_checkpoint: SortedKeys = derived()  # noqa: RUF009
    """(trial, steps completed) for validations at steps without a checkpoint"""
    started_from: SortedKeys = derived()  # noqa: RUF009
    """(checkpoint, experiment that starts from it)"""
    dependents: SortedKeys = derived()  # noqa: RUF009
    """(experiment, other experiment that starts from one of its checkpoints)"""
    version_numbers: SortedKeys = derived()  # noqa: RUF009
    """(model, number, version)"""
    versions_of_checkpoint: SortedKeys = derived()  # noqa: RUF009
    """(checkpoint, version)"""
    model_names: dict[str, int] = derived()  # noqa: RUF009
    """Name -> model"""

    storage_usage: Usage = derived()  # noqa: RUF009
    """Bytes that count towards storage quotas, by experiment"""

    def __post_init__(self) -> None:
        self.made_at = results_by_age(self.creations)
        self.storage_usage = Usage()
        for id, weight in self.weights.items():
            self.storage_usage.set(id, Account(weight.owner, weight.place), weight.size_bytes)
        checkpoints = self.checkpoints.values()
        self.trials_of = SortedKeys((trial.experiment_id, id) for id, trial in self.trials.items())
        self.checkpoints_by_status = SortedKeys(status_index_key(checkpoint) for checkpoint in checkpoints)
        self.stored_by_trial = SortedKeys(
            (checkpoint.trial_id, checkpoint.order, checkpoint.uuid) for checkpoint in checkpoints
        )
        self.checkpoint_steps = SortedKeys(
            (checkpoint.trial_id, checkpoint.steps_completed, checkpoint.uuid) for checkpoint in checkpoints
        )
        self.validation_steps = SortedKeys(parse_validation_key(key) for key in self.validations)
        self.validations_without_checkpoint = SortedKeys(
            key for key in self.validation_steps if self.checkpoint_steps.first(*key) is None
        )
        origins = self.origins.items()
        self.started_from = SortedKeys((origin.checkpoint, id) for id, origin in origins)
        self.dependents = SortedKeys(
            (origin.experiment_id, id) for id, origin in origins if origin.experiment_id
        )
        self.version_numbers = SortedKeys((v.model_id, v.number, id) for id, v in self.versions.items())
        self.versions_of_checkpoint = SortedKeys((v.checkpoint, id) for id, v in self.versions.items())
        self.model_names = {model.definition.name: id for id, model in self.models.items()}

    def put_experiment(self, changed: Experiment) -> Iterable[Key]:
        """Store an experiment."""
        if changed.source and changed.id not in self.experiments:
            source = self.checkpoints.get(changed.source)
            self.started_from.add(changed.source, changed.id)
            self.origins[changed.id] = Origin(changed.source)
            yield from self._record_origin(changed.id, source.experiment_id if source is not None else 0)
        self.experiments[changed.id] = changed
        yield "experiments", changed.id

    def _record_origin(self, id: int, experiment_id: int) -> Iterable[Key]:
        """Record whose checkpoint an experiment starts from; 0 if that is unknown."""
        origin = self.origins[id]
        self.dependents.discard(origin.experiment_id, id)
        if experiment_id:
            self.dependents.add(experiment_id, id)
        self.origins[id] = Origin(origin.checkpoint, experiment_id)
        yield "origins", id

    def drop_experiment(self, id: int) -> Iterable[Key]:
        """Forget an experiment whose trials are all forgotten."""
        experiment = self.experiments.pop(id)
        yield "experiments", id
        if experiment.source:
            self.started_from.discard(experiment.source, id)
            origin = self.origins.pop(id)
            yield "origins", id
            if origin.experiment_id:
                self.dependents.discard(origin.experiment_id, id)
                # It no longer protects the checkpoint that it started from.
                yield "experiments", origin.experiment_id

    def put_trial(self, changed: Trial) -> Iterable[Key]:
        """Store a trial."""
        if changed.id not in self.trials:
            self.trials_of.add(changed.experiment_id, changed.id)
        self.trials[changed.id] = changed
        yield "trials", changed.id

    def drop_trial(self, id: int) -> Iterable[Key]:
        """Forget a trial with its checkpoints and validations."""
        for uuid in list(self.stored_by_trial.ids(id)):
            yield from self._drop_checkpoint(self.checkpoints[uuid])
        for steps in list(self.validation_steps.ids(id)):
            yield from self.drop_validation(id, steps)
        self.trials_of.discard(self.trials.pop(id).experiment_id, id)
        yield "trials", id

    def put_checkpoint(self, changed: Checkpoint) -> Iterable[Key]:
        """Store a checkpoint."""
        before = self.checkpoints.get(changed.uuid)
        self.checkpoints[changed.uuid] = changed
        yield "checkpoints", changed.uuid
        if before is None:
            self.stored_by_trial.add(changed.trial_id, changed.order, changed.uuid)
            self.checkpoint_steps.add(changed.trial_id, changed.steps_completed, changed.uuid)
            self.validations_without_checkpoint.discard(changed.trial_id, changed.steps_completed)
            # An experiment may have been created with the id of a checkpoint that is reported only now.
            for dependent in list(self.started_from.ids(changed.uuid)):
                yield from self._record_origin(dependent, changed.experiment_id)
        self.checkpoints_by_status.swap(
            status_index_key(before) if before else None, status_index_key(changed)
        )
        yield from self._adjust_totals(before, -1)
        yield from self._adjust_totals(changed, 1)

    def _drop_checkpoint(self, checkpoint: Checkpoint) -> Iterable[Key]:
        del self.checkpoints[checkpoint.uuid]
        yield "checkpoints", checkpoint.uuid
        self.stored_by_trial.discard(checkpoint.trial_id, checkpoint.order, checkpoint.uuid)
        self.checkpoint_steps.discard(checkpoint.trial_id, checkpoint.steps_completed, checkpoint.uuid)
        self.checkpoints_by_status.discard(*status_index_key(checkpoint))
        for dependent in list(self.started_from.ids(checkpoint.uuid)):
            yield from self._record_origin(dependent, 0)
        yield from self._adjust_totals(checkpoint, -1)

    def _adjust_totals(self, checkpoint: Checkpoint | None, sign: int) -> Iterable[Key]:
        if checkpoint is not None:
            tally = self.tallies.get(checkpoint.state, Tally())
            size = checkpoint.size_bytes
            yield from self._add_usage(checkpoint.experiment_id, sign * size)
            self.tallies[checkpoint.state] = Tally(tally.count + sign, tally.size_bytes + sign * size)
            yield "tallies", checkpoint.state

    def _add_usage(self, experiment_id: int, change: int) -> Iterable[Key]:
        if change:
            yield from self.put_weight(experiment_id, self.storage_usage.amount(experiment_id) + change)

    def put_weight(self, experiment_id: int, size_bytes: int) -> Iterable[Key]:
        """Record how much an experiment has stored, charged to its current account."""
        account = account_of(self, experiment_id)
        if size_bytes:
            self.weights[experiment_id] = Weight(account.owner, account.place, size_bytes)
            self.storage_usage.set(experiment_id, account, size_bytes)
        else:
            self.weights.pop(experiment_id, None)
            self.storage_usage.remove(experiment_id)
        yield "weights", experiment_id

    def put_validation(self, trial_id: int, steps: int, validation: Validation) -> Iterable[Key]:
        """Store a trial's validation at a number of steps."""
        key = validation_key(trial_id, steps)
        if key not in self.validations:
            self.validation_steps.add(trial_id, steps)
            if self.checkpoint_steps.first(trial_id, steps) is None:
                self.validations_without_checkpoint.add(trial_id, steps)
        self.validations[key] = validation
        yield "validations", key

    def drop_validation(self, trial_id: int, steps: int) -> Iterable[Key]:
        """Forget a validation."""
        key = validation_key(trial_id, steps)
        del self.validations[key]
        self.validation_steps.discard(trial_id, steps)
        self.validations_without_checkpoint.discard(trial_id, steps)
        yield "validations", key

    def checkpoints_of_trial(self, trial_id: int) -> Iterator[Checkpoint]:
        """All checkpoints of a trial in the order of storing, whatever their state."""
        if trial_id not in self.trials:
            return iter(())
        return (self.checkpoints[uuid] for uuid in self.stored_by_trial.ids(trial_id))

    def checkpoints_of_experiment(self, experiment_id: int, *statuses: str) -> Iterator[Checkpoint]:
        """The checkpoints of an experiment with these standings, oldest first within each.

        Without `statuses`, all of them.
        """
        if experiment_id not in self.experiments:
            return iter(())
        keys: list[tuple[Any, ...]] = [(experiment_id, kind) for kind in statuses] or [(experiment_id,)]
        return (self.checkpoints[uuid] for key in keys for uuid in self.checkpoints_by_status.ids(*key))


def deletion_status(checkpoint: Checkpoint) -> str:
    """One word that determines what may happen to a checkpoint.

    It is "registered" as a version of a model, or a task is deleting it ("going"), or it is simply "there".
    It is "gone" once deleted, or "failed" if all attempts to delete it failed.
    """
    if checkpoint.versions:
        return REGISTERED
    if checkpoint.going:
        return DELETING
    return {"DELETED": DELETED, "ERROR": FAILED}.get(checkpoint.state, STORED)


def status_index_key(checkpoint: Checkpoint) -> tuple[int, str, int, str]:
    """A checkpoint's place in `State.checkpoints_by_status`."""
    return checkpoint.experiment_id, deletion_status(checkpoint), checkpoint.order, checkpoint.uuid


def validation_key(trial_id: int, steps: int) -> str:
    """The key of a trial's validation at a number of steps."""
    return f"{trial_id}@{steps}"


def parse_validation_key(key: str) -> tuple[int, int]:
    """The trial and the steps of a validation key."""
    trial_id, _, steps = key.partition("@")
    return int(trial_id), int(steps)

"""The records that the metrics service folds.

All are frozen except `JudgedBatch`, which only carries a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.events import metrics
from det_contracts.reports import ReportBatch
from services.kit.rules import Key, derived
from services.kit.sorted_keys import SortedKeys
from services.metrics.domain.sharing import Sharing, sharing_of
from services.metrics.domain.steps import Steps

VALIDATION = "validation"
MAX_ID_DIGITS = 19
"""Maximum number of digits of an experiment id; anything longer in a log is not an id."""
NO_EXPERIMENT = 0
NAME_WEIGHT, STRETCH_WEIGHT = 60, 150
"""Bytes that a name takes in addition to its characters, and a stretch of steps, in memory."""
SENDERS = 64
"""Number of processes of a run whose batch numbers are remembered."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Accepted reports of one series, in columns of equal length."""

    indexes: Sequence[int]
    """Position of each report in its batch."""
    group: str
    steps: list[int]
    at: list[float]
    columns: dict[str, list[Any]]
    batch_metrics: list[Any] = []
    """One per report, or empty."""
    merges: bool = False
    """New keys for steps that were reported before."""


class Archive(msgspec.Struct, frozen=True):
    """The first report of a new run. It makes earlier runs' reports at these steps and later outdated."""

    run: int
    group: str
    steps: int


class LogLines(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of log lines that has been validated. Its lines are decoded only when they are written."""

    task_id: str
    allocation_id: str
    worker_id: str
    source: str
    offset: int
    count: int
    lines: msgspec.Raw
    """JSON of `list[LogLine]`."""


@dataclass
class JudgedBatch:
    """A batch of a data stream. The fold stores its verdict here for the read model."""

    batch: ReportBatch | LogLines
    accepted: bool = False
    size: int = 0
    """Size of the message, in bytes."""
    keeps_points: bool = True
    """Whether the points of accepted reports are kept, in addition to their effect on statistics."""
    expired: bool = False
    """Log lines that would have been accepted but are past retention."""
    pieces: list[Piece] = field(default_factory=list)
    archive: Archive | None = None

    @property
    def trial_id(self) -> int | None:
        """The trial that reports; None for log lines."""
        return None if isinstance(self.batch, LogLines) else self.batch.trial_id

    @property
    def experiment(self) -> int | None:
        """The experiment that it says it belongs to; None for a task without one."""
        if not isinstance(self.batch, LogLines):
            return self.batch.experiment_id
        return experiment_of_task(self.batch.task_id) or None

    @property
    def source(self) -> str | None:
        """The source of counted log lines, as in `source_key`; None for everything else."""
        return source_key(self.batch) if isinstance(self.batch, LogLines) and self.batch.offset >= 0 else None


class Kind(msgspec.Struct, frozen=True):
    """Reports of a group with the same names, and the steps at which they were made."""

    names: tuple[str, ...]
    batched: bool
    """Whether they had per-batch metrics."""
    steps: Steps = ()

    @property
    def weight(self) -> int:
        """Roughly how many bytes of memory this takes."""
        return sum(map(len, self.names)) + NAME_WEIGHT * len(self.names) + STRETCH_WEIGHT * len(self.steps)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """What must be remembered about one group of a trial's reports to recognise repeated keys."""

    run: int
    highest: int = -1
    """The highest step reported in this run."""
    kinds: tuple[Kind, ...] = ()
    recent: tuple[tuple[int, int], ...] = ()
    """(steps, digest of the values) of the newest reports. Repeating one of them is not a conflict."""
    weight: int = 0
    """Roughly how many bytes of memory `kinds` take. 0 in records of an earlier version."""


class Finding(msgspec.Struct, frozen=True):
    """The decision that a report led to: exactly one of the two is set."""

    number: int
    validated: metrics.Validated | None = None
    refused: metrics.ReportRefused | None = None


class Refusal(msgspec.Struct, frozen=True):
    """What was wrong with the batch at a position of REPORTS."""

    position: int
    reason: str
    number: int = 0
    """Number of the decision within the trial. Records of an earlier version have this and later defaults."""
    run: int = 0
    message: str = msgspec.field(name="told", default="")
    """The text for the run's script."""


class Sender(msgspec.Struct, frozen=True, array_like=True):
    """A process that reports for a trial, and its newest batch."""

    name: str
    batch: int


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a trial's reports, and which decisions about them are not in CONTROL yet."""

    id: int
    run: int = 0
    """The newest run that has reported."""
    batch: int = 0
    """Newest batch of that run from a sender without a name."""
    senders: tuple[Sender, ...] = ()
    """The other senders of that run, most recent last; only the newest are kept."""
    opened: int = 0
    """The newest run that had a report accepted."""
    decided: int = 0
    """Number of decisions that the reports led to."""
    stated: int = 0
    """Decisions up to this number are in CONTROL; the others are kept as findings."""
    refusals: tuple[Refusal, ...] = ()
    """The newest refusals, for scripts that wait for them."""
    refused: int = 0
    """Number of refusals among the decisions."""
    size: int = 0
    """Size of all report messages that were judged, in bytes."""
    remembered: int = 0
    """Sum of the weights of the trial's groups."""

    def is_new(self, batch: ReportBatch) -> bool:
        """Whether a batch is new, judged by its number."""
        # Numbers begin anew with each run. Senders that do not count, such as the REST API, number everything
        # 0.
        if batch.run != self.run or batch.number == 0:
            return True
        if not batch.sender:
            return batch.number > self.batch
        return all(sender.batch < batch.number for sender in self.senders if sender.name == batch.sender)

    def after_batch(self, batch: ReportBatch) -> Trial:
        """The trial after a batch of its newest run was counted."""
        same = batch.run == self.run
        newest, senders = (self.batch, self.senders) if same else (0, ())
        if batch.number and batch.sender:
            others = (sender for sender in senders if sender.name != batch.sender)
            senders = (*others, Sender(batch.sender, batch.number))[-SENDERS:]
        elif batch.number:
            newest = batch.number
        return msgspec.structs.replace(self, run=batch.run, batch=newest, senders=senders)


class EndedTrial(msgspec.Struct, frozen=True):
    """A trial that has ended."""

    trial_id: int
    position: int = 0
    """Where CONTROL says so; 0 if an earlier release has read it."""


class DeletedExperiment(msgspec.Struct, frozen=True):
    """An experiment that was deleted. Anything that still arrives from it is dropped."""

    experiment_id: int


class Source(msgspec.Struct, frozen=True):
    """The progress of one source of an allocation's log."""

    offset: int


class Trimmed(msgspec.Struct, frozen=True):
    """Everything stored up to this position is dropped."""

    through: int


@dataclass
class State:
    """Everything that the metrics service folds."""

    trials: dict[int, Trial] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    """Decisions that are not in CONTROL yet, by `finding_key`."""
    ended: dict[int, EndedTrial] = field(default_factory=dict)
    """Until they are settled."""
    settled: dict[int, EndedTrial] = field(default_factory=dict)
    dropped: dict[int, Trimmed] = field(default_factory=dict)
    """Trials whose points up to a position of REPORTS are dropped."""
    sources: dict[str, Source] = field(default_factory=dict)
    gone: dict[int, DeletedExperiment] = field(default_factory=dict)
    trimmed: dict[str, Trimmed] = field(default_factory=dict)
    """By stream."""
    sharing: dict[str, Sharing] = field(default_factory=dict)
    """How several processes share the trials: one record, once they do."""
    groups_of: SortedKeys = derived()  # noqa: RUF009
    """(trial, key of a group)"""
    sources_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, task, key of a source). The experiment is 0 for tasks without one."""

    def __post_init__(self) -> None:
        self.groups_of = SortedKeys((int(key.partition("/")[0]), key) for key in self.groups)
        self.sources_of = SortedKeys(source_index_key(key) for key in self.sources)

    def put_group(self, trial_id: int, key: str, group: Group) -> Iterable[Key]:
        """Store what is remembered about a group of a trial's reports."""
        if key not in self.groups:
            self.groups_of.add(trial_id, key)
        self.groups[key] = group
        yield "groups", key

    def put_source(self, key: str, source: Source) -> Iterable[Key]:
        """Store the progress of a source."""
        if key not in self.sources:
            self.sources_of.add(*source_index_key(key))
        self.sources[key] = source
        yield "sources", key

    def drop_sources(self, experiment_id: int, *task: str) -> Iterable[Key]:
        """Forget the sources of one task of an experiment, or of all its tasks."""
        # Looking up any of them loads all of them.
        self.sources.get(unused_source_key(experiment_id, *task))
        for entry in list(self.sources_of.scan(experiment_id, *task)):
            self.sources_of.discard(*entry)
            del self.sources[entry[-1]]
            yield "sources", entry[-1]

    def drop_trial(self, id: int) -> Iterable[Key]:
        """Forget a trial."""
        for number in self.unrecorded(id):
            key = finding_key(id, number)
            if self.findings.pop(key, None) is not None:
                yield "findings", key
        for key in list(self.groups_of.ids(id)):
            self.groups_of.discard(id, key)
            del self.groups[key]
            yield "groups", key
        for name in ("trials", "ended", "settled", "dropped"):
            if getattr(self, name).pop(id, None) is not None:
                yield name, id

    def unrecorded(self, trial_id: int) -> range:
        """The numbers of a trial's decisions that are not in CONTROL yet."""
        trial = self.trials.get(trial_id)
        return range(trial.stated + 1, trial.decided + 1) if trial is not None else range(0)

    def pending_findings(self, trial_id: int) -> Iterator[Finding]:
        """A trial's decisions that are not in CONTROL yet, in order."""
        return (self.findings[finding_key(trial_id, number)] for number in self.unrecorded(trial_id))


def shard_of_trial(state: State, trial_id: int) -> int:
    """The shard that reads a trial's reports, counted from 1."""
    return sharing_of(state.sharing).shard_of_trial(trial_id)


def shard_of_task(state: State, task_id: str) -> int:
    """The shard that reads a task's log lines, counted from 1."""
    return sharing_of(state.sharing).shard_of_task(experiment_of_task(task_id), task_id)


def trimmed_through(state: State) -> int:
    """The position of LOGS up to which lines are dropped."""
    trimmed = state.trimmed.get(subjects.LOGS)
    return trimmed.through if trimmed else 0


def dropped_through(state: State, trial_id: int) -> int:
    """The position of REPORTS up to which a trial's points are dropped."""
    dropped = state.dropped.get(trial_id)
    return dropped.through if dropped else 0


def group_key(trial_id: int, group: str) -> str:
    """The key of a trial's group in the state."""
    return f"{trial_id}/{group}"


def finding_key(trial_id: int, number: int) -> str:
    """The key of a trial's decision in the state."""
    return f"{trial_id}#{number}"


def source_key(batch: LogLines) -> str:
    """The key of a log line source in the state."""
    return f"{batch.allocation_id} {batch.worker_id} {batch.source}"


def unused_source_key(experiment_id: int, task_id: str = "") -> str:
    """A key that no source has, with the same root as those of the experiment or task."""
    return f"{task_id or f'{experiment_id}.'}. "


def source_index_key(key: str) -> tuple[int, str, str]:
    """Experiment, task and key of a source. The experiment is 0 for tasks without one."""
    task = key.partition(" ")[0].rpartition(".")[0]
    return experiment_of_task(task), task, key


def experiment_of_task(task_id: str) -> int:
    """The experiment of a task, or `NO_EXPERIMENT`.

    >>> experiment_of_task("12.ab"), experiment_of_task("12"), experiment_of_task("x.12")
    (12, 0, 0)
    """
    owner, dot, _ = task_id.partition(".")
    is_id = dot and owner.isdecimal() and len(owner) < MAX_ID_DIGITS
    return int(owner) if is_id else NO_EXPERIMENT

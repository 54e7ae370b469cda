"""The records that the metrics service folds. All frozen but `Judged`, which only carries a verdict along."""

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
from services.metrics.domain.steps import Steps

VALIDATION = "validation"
LONGEST_ID = 19
"""Digits of an experiment's id; what is longer in a log is none."""
NO_EXPERIMENT = 0
SENDERS = 64
"""Processes of a run whose numbers are remembered."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Accepted reports of one series, in columns of equal lengths."""

    places: Sequence[int]
    """Of each report in its batch."""
    group: str
    steps: list[int]
    at: list[float]
    columns: dict[str, list[Any]]
    batch_metrics: list[Any] = []
    """Per report, or empty."""
    merges: bool = False
    """New keys for steps that were reported before."""


class Archive(msgspec.Struct, frozen=True):
    """The first report of a new run: what earlier runs reported at these steps or later is outdated."""

    run: int
    group: str
    steps: int


class LogLines(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of log lines that has been looked through, and is unpacked only to be written."""

    task_id: str
    allocation_id: str
    worker_id: str
    source: str
    offset: int
    count: int
    lines: msgspec.Raw
    """JSON of `list[LogLine]`."""


@dataclass
class Judged:
    """A batch of a data stream; the fold writes its verdict beside it, for the read model."""

    batch: ReportBatch | LogLines
    accepted: bool = False
    drawn: bool = True
    """Of accepted reports: the points are kept, beside what they say to statistics."""
    passed_over: bool = False
    """Log lines that would have been accepted, but are not kept any longer."""
    pieces: list[Piece] = field(default_factory=list)
    archive: Archive | None = None

    @property
    def trial_id(self) -> int | None:
        """The trial that reports; None for log lines."""
        return None if isinstance(self.batch, LogLines) else self.batch.trial_id

    @property
    def source(self) -> str | None:
        """Where log lines that are counted come from, as `source_key` has it; None for all else."""
        return source_key(self.batch) if isinstance(self.batch, LogLines) and self.batch.offset >= 0 else None


class Kind(msgspec.Struct, frozen=True):
    """Reports of a group that carried the same names, and the steps that they were made at."""

    names: tuple[str, ...]
    batched: bool
    """They had per-batch metrics."""
    steps: Steps = ()


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """What must be remembered of one group of a trial's reports to know a key that comes twice."""

    run: int
    highest: int = -1
    """Most steps reported in this run."""
    kinds: tuple[Kind, ...] = ()
    recent: tuple[tuple[int, int], ...] = ()
    """(steps, digest of the values) of the newest reports: a repeat of one of them is no conflict."""


class Finding(msgspec.Struct, frozen=True):
    """What a report led to: one of the two."""

    number: int
    validated: metrics.Validated | None = None
    refused: metrics.ReportRefused | None = None


class Refusal(msgspec.Struct, frozen=True):
    """What was wrong with the batch at a position of REPORTS."""

    position: int
    reason: str
    number: int = 0
    """Of the decision, counted over all of the trial; 0 in those of an earlier version, like what follows."""
    run: int = 0
    told: str = ""
    """What the run's script is told."""


class Sender(msgspec.Struct, frozen=True, array_like=True):
    """A process that reports for a trial, and its newest batch."""

    name: str
    batch: int


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How far a trial's reports have come, and what of them is not stated in CONTROL yet."""

    id: int
    run: int = 0
    """The newest run that has reported."""
    batch: int = 0
    """Newest batch of that run by a sender without a name."""
    senders: tuple[Sender, ...] = ()
    """The others of that run, those that reported last at the end; the newest few."""
    opened: int = 0
    """The newest run that had a report accepted."""
    decided: int = 0
    """Decisions that the reports led to."""
    stated: int = 0
    """Decisions that are in CONTROL, up to this one; the others are kept as findings."""
    refusals: tuple[Refusal, ...] = ()
    """The newest few, for whoever waits to hear."""

    def is_new(self, batch: ReportBatch) -> bool:
        """Whether a batch has not come before, as far as its number tells."""
        if batch.run != self.run or batch.number == 0:
            return True
        if not batch.sender:
            return batch.number > self.batch
        return all(known.batch < batch.number for known in self.senders if known.name == batch.sender)

    def counting(self, batch: ReportBatch) -> Trial:
        """The trial when a batch of its newest run has come."""
        same = batch.run == self.run
        newest, senders = (self.batch, self.senders) if same else (0, ())
        if batch.number and batch.sender:
            others = (known for known in senders if known.name != batch.sender)
            senders = (*others, Sender(batch.sender, batch.number))[-SENDERS:]
        elif batch.number:
            newest = batch.number
        return msgspec.structs.replace(self, run=batch.run, batch=newest, senders=senders)


class Ended(msgspec.Struct, frozen=True):
    """A trial that has ended."""

    trial_id: int


class Gone(msgspec.Struct, frozen=True):
    """An experiment that was deleted: what still comes of it is not kept."""

    experiment_id: int


class Source(msgspec.Struct, frozen=True):
    """How far the log of one source of an allocation has come."""

    offset: int


class Trimmed(msgspec.Struct, frozen=True):
    """What was stored up to this position is not kept."""

    through: int


@dataclass
class State:
    """Everything that the metrics service folds."""

    trials: dict[int, Trial] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    """What reports led to and is not stated in CONTROL yet, by `finding_key`."""
    ended: dict[int, Ended] = field(default_factory=dict)
    """Until they are settled."""
    settled: dict[int, Ended] = field(default_factory=dict)
    dropped: dict[int, Trimmed] = field(default_factory=dict)
    """Trials whose points up to a position of REPORTS are not kept."""
    sources: dict[str, Source] = field(default_factory=dict)
    gone: dict[int, Gone] = field(default_factory=dict)
    trimmed: dict[str, Trimmed] = field(default_factory=dict)
    """By stream."""
    groups_of: SortedKeys = derived()  # noqa: RUF009
    """(trial, key of a group)"""
    sources_of: SortedKeys = derived()  # noqa: RUF009
    """(experiment, task, key of a source); of tasks of no experiment, with 0 for it."""

    def __post_init__(self) -> None:
        self.groups_of = SortedKeys((int(key.partition("/")[0]), key) for key in self.groups)
        self.sources_of = SortedKeys(source_place(key) for key in self.sources)

    def put_group(self, trial_id: int, key: str, group: Group) -> Iterable[Key]:
        """Keep what is remembered of a group of a trial's reports."""
        if key not in self.groups:
            self.groups_of.add(trial_id, key)
        self.groups[key] = group
        yield "groups", key

    def put_source(self, key: str, source: Source) -> Iterable[Key]:
        """Keep how far a source has come."""
        if key not in self.sources:
            self.sources_of.add(*source_place(key))
        self.sources[key] = source
        yield "sources", key

    def drop_sources(self, experiment_id: int, *task: str) -> Iterable[Key]:
        """Forget the sources of one task of an experiment, or of all."""
        # Whoever looks for one of them has all of them loaded.
        self.sources.get(no_source(experiment_id, *task))
        for place in list(self.sources_of.scan(experiment_id, *task)):
            self.sources_of.discard(*place)
            del self.sources[place[-1]]
            yield "sources", place[-1]

    def drop_trial(self, id: int) -> Iterable[Key]:
        """Forget a trial."""
        for number in self.unstated(id):
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

    def unstated(self, trial_id: int) -> range:
        """The numbers of a trial's decisions that are not in CONTROL yet."""
        known = self.trials.get(trial_id)
        return range(known.stated + 1, known.decided + 1) if known is not None else range(0)

    def pending(self, trial_id: int) -> Iterator[Finding]:
        """What a trial's reports led to that is not in CONTROL yet, in order."""
        return (self.findings[finding_key(trial_id, number)] for number in self.unstated(trial_id))


def trimmed_through(state: State) -> int:
    """The position of LOGS that lines are kept beyond."""
    known = state.trimmed.get(subjects.LOGS)
    return known.through if known else 0


def dropped_through(state: State, trial_id: int) -> int:
    """The position of REPORTS that a trial's points are kept beyond."""
    known = state.dropped.get(trial_id)
    return known.through if known else 0


def group_key(trial_id: int, group: str) -> str:
    """Where a group of a trial is kept in the state."""
    return f"{trial_id}/{group}"


def finding_key(trial_id: int, number: int) -> str:
    """Where a trial's decision of that number is kept in the state."""
    return f"{trial_id}#{number}"


def source_key(batch: LogLines) -> str:
    """Where a source of log lines is kept in the state."""
    return f"{batch.allocation_id} {batch.worker_id} {batch.source}"


def no_source(experiment_id: int, task_id: str = "") -> str:
    """A key that no source has, in one place with those of an experiment, or of a task of no experiment."""
    return f"{task_id or f'{experiment_id}.'}. "


def source_place(key: str) -> tuple[int, str, str]:
    """Experiment, task and key of a source; tasks of no experiment have 0 for it."""
    task = key.partition(" ")[0].rpartition(".")[0]
    owner, dot, _ = task.partition(".")
    of_experiment = dot and owner.isdecimal() and len(owner) < LONGEST_ID
    return int(owner) if of_experiment else NO_EXPERIMENT, task, key

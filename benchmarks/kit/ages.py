"""Ages of a cluster: cycles of the same experiments, again and again, each in ids and at times of its own.

What happens in a cycle is made once, by the rules themselves; the next one says it again with larger ids, so
that the state after very many of them is a matter of minutes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks.kit.histories import Cluster, config
from det_contracts import codec, subjects
from det_contracts.envelope import Recorded
from det_contracts.events import metrics, scheduler, searcher, trial, worker
from det_contracts.reports import ReportBatch, Series
from services.metrics.domain import JudgedBatch

CYCLE_S = 6 * 3600
"""From one cycle to the next; whole seconds, so that times are whole steps apart, too."""
NAMED = ("task_id", "allocation_id", "uuid")
"""Fields that begin with the number of the experiment."""
WORKER = "of-old"
ELSEWHERE = "elsewhere"
"""The pool that the live trials wait for: it has no worker, so that they stay what they are."""
FRUITS = ("apple", "pear", "plum", "fig", "quince")
_NUMBER = re.compile(r"\d+")
replace = msgspec.structs.replace


@dataclass(frozen=True)
class Cycle:
    """What comes again and again; each of its experiments has another seed, name and label."""

    experiments: int = 20
    each: int = 100
    """Trials of an experiment."""

    @property
    def trials(self) -> int:
        """How many end in one cycle."""
        return self.experiments * self.each

    def plan(self, number: int) -> dict[str, Any]:
        """The configuration of one experiment."""
        fruit = FRUITS[number % len(FRUITS)]
        experiment_config = config(max_trials=self.each, concurrent=self.each)
        # Nothing is to be deleted: a real worker would, one experiment after the other.
        storage = experiment_config["checkpoint_storage"] | {"save_trial_latest": 1000}
        return experiment_config | {
            "checkpoint_storage": storage,
            "name": f"{fruit} search",
            "description": f"the {fruit} of the season",
            "labels": [fruit, "aged"],
            "reproducibility": {"experiment_seed": number + 1},
        }

    @functools.cached_property
    def events(self) -> tuple[Any, ...]:
        """What happens in the first one, from the registration of its worker until that leaves."""
        cluster = Cluster(self.each, WORKER)
        for number in range(self.experiments):
            cluster.submit(self.plan(number))
            cluster.finish()
        return (*_with_reports(cluster.log), worker.WorkerLeft(WORKER, "s"))

    def live(self, experiments: int) -> tuple[Any, ...]:
        """Experiments whose trials have begun, failed once, and wait for slots again."""
        cluster = Cluster(experiments * self.each, WORKER, ELSEWHERE)
        for number in range(experiments):
            experiment_config = self.plan(number) | {"name": f"live {number}"}
            experiment_config["resources"] = experiment_config["resources"] | {"resource_pool": ELSEWHERE}
            experiment_config["searcher"] = experiment_config["searcher"] | {"name": "random"}
            cluster.submit(experiment_config)
        cluster.fail()
        # Nobody is there who could run them a second time.
        again = (isinstance(event, scheduler.AllocationAssigned) and event.run > 1 for event in cluster.log)
        lived = [event for event, is_again in zip(cluster.log, again, strict=True) if not is_again]
        return (*_with_reports(lived), worker.WorkerLeft(WORKER, "s"))

    def later(self, shift: Shift, cycles: int) -> Shift:
        """Ids and times so many cycles later."""
        return Shift(
            shift.experiments + cycles * self.experiments,
            shift.trials + cycles * self.trials,
            shift.at + cycles * CYCLE_S,
        )


def _with_reports(events: Iterable[Any]) -> Iterator[Any]:
    experiment_of: dict[int, int] = {}
    for event in events:
        yield event
        match event:
            case searcher.TrialCreated():
                experiment_of[event.trial_id] = event.experiment_id
            case trial.OperationCompleted():
                yield from _reported(event, experiment_of[event.trial_id])
            case searcher.TrialEnded():
                yield metrics.Settled(trial_id=event.trial_id, reason="all its reports are known")


def _reported(done: trial.OperationCompleted, experiment_id: int) -> Iterator[Any]:
    """A report of an operation, and what the metrics service says to it."""
    series = Series("validation", [done.length], [1.0], {"loss": [done.metric]}, [])
    yield JudgedBatch(
        ReportBatch(
            trial_id=done.trial_id,
            experiment_id=experiment_id,
            run=done.run,
            number=0,
            searcher_metric="loss",
            smaller_is_better=True,
            series=[series],
        )
    )
    yield metrics.Validated(
        trial_id=done.trial_id,
        number=done.seq,
        run=done.run,
        steps_completed=done.length,
        metric=done.metric,
        reported_at=1.0,
    )


class Shift(msgspec.Struct, frozen=True):
    """How much larger ids are than those that rules gave out first, and when it happened."""

    experiments: int
    trials: int
    at: float

    def event(self, event: Any) -> Any:
        """An event with these ids."""
        if isinstance(event, JudgedBatch):
            return JudgedBatch(self.event(event.batch))
        changed: dict[str, Any] = {}
        for name, more in (("experiment_id", self.experiments), ("trial_id", self.trials)):
            if isinstance(value := getattr(event, name, None), int):
                changed[name] = value + more
        for name in NAMED:
            if value := getattr(event, name, None):
                changed[name] = self.named(value)
        if isinstance(checkpoint := getattr(event, "checkpoint", None), str):
            changed["checkpoint"] = self.named(checkpoint)
        return replace(event, **changed)

    def named(self, value: str) -> str:
        """A name that begins with the number of an experiment."""
        number = _NUMBER.match(value)
        return f"{int(number[0]) + self.experiments}{value[number.end() :]}" if number else value


def recorded(events: Iterable[Any], shift: Shift) -> Iterator[Recorded]:
    """Events as services fold them; they have no positions yet."""
    for place, event in enumerate(events):
        stream = subjects.REPORTS if isinstance(event, JudgedBatch) else subjects.CONTROL
        actor = "user:determined" if isinstance(event, searcher.ExperimentCreated) else ""
        yield Recorded(0, shift.event(event), "", actor, shift.at + place // 2, "", stream)


def message(record: Recorded, id: str) -> tuple[str, bytes]:
    """Subject and body of an event as it lies in the log."""
    if isinstance(record.event, JudgedBatch):
        batch: Any = record.event.batch
        return subjects.reports(batch.trial_id), msgspec.json.encode(batch)
    return codec.subject_of(record.event), codec.encode(record.event, id=id, actor=record.actor, at=record.at)

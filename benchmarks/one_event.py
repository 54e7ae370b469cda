"""How long one event occupies a service with a long history: folded, answered, its records encoded.

python -m benchmarks.one_event [--quick] [TRIALS]
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import median, row
from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, metrics, searcher, trial
from det_contracts.expconf import complete
from det_contracts.reports import ReportBatch, Series
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit.rules import Rules
from services.metrics.app import RULES as METRICS
from services.metrics.domain import JudgedBatch
from services.searcher.app import RULES as SEARCHER

ALL: tuple[Rules[Any], ...] = (SEARCHER, METRICS, CHECKPOINTS, GATEWAY)
REASON = "benchmark"
STORAGE = {"type": "shared_fs", "host_path": "/tmp"}


@dataclass(frozen=True)
class Size:
    trials: int = 200_000
    """Of all experiments together."""
    large: int = 50_000
    """Of the largest one; the others have ten each."""
    samples: int = 20


def main(size: Size) -> None:
    services = {rules.owner: Service(rules) for rules in ALL}
    gc.freeze()
    for event in history(size):
        for service in services.values():
            service.take(event)
    gc.collect()
    gc.freeze()
    small = range(2, 2 + size.samples)
    first = size.trials + 1
    for owner, service in services.items():
        worst = [max(map(service.take, deletion(id, size))) for id in small]
        row(f"{owner}: an experiment of 10 trials is deleted, worst event", 1000 * median(worst), "ms", "< 5")
    for id in range(first, first + size.samples):
        services["searcher"].take(trial_requested(1, id))
    for owner, service in services.items():
        taken = [service.take(made(1, id)) for id in range(first, first + size.samples)]
        row(f"{owner}: a trial more in an experiment of {size.large:,}", 1000 * median(taken), "ms", "< 1")


class Service:
    """The state of one service."""

    def __init__(self, rules: Rules[Any]) -> None:
        self.rules = rules
        self.state = rules.state()
        self._position = 0

    def take(self, event: Any) -> float:
        """Fold one event, react, and encode what has changed; returns the seconds of processor time."""
        self._position += 1
        recorded = Recorded(self._position, event, "", "", 1.0, "", "CONTROL")
        began = time.thread_time()
        keys = dict.fromkeys(self.rules.evolve(self.state, recorded))
        for key in keys:
            self.rules.react(self.state, key)
        for kind, id in keys:
            msgspec.json.encode(getattr(self.state, kind).get(id))
        return time.thread_time() - began


def trials_of(experiment_id: int, size: Size) -> range:
    """The first trials belong to the first experiment; each of the others has ten."""
    if experiment_id == 1:
        return range(1, size.large + 1)
    first = size.large + 1 + 10 * (experiment_id - 2)
    return range(first, first + 10)


def history(size: Size) -> Iterator[Any]:
    """Unmanaged experiments, whose trials have each reported twice, saved, and ended."""
    written = {
        "searcher": {"name": "single", "metric": "loss", "max_length": 1},
        "checkpoint_storage": STORAGE,
    }
    config = complete(written, seed=1, name="benchmark", managed=False)
    for experiment_id in range(1, 2 + (size.trials - size.large) // 10):
        yield searcher.ExperimentCreated(
            experiment_id=experiment_id,
            user="bench",
            config=config,
            original_config="",
            request_key=f":{experiment_id}",
            unmanaged=True,
            reason=REASON,
        )
        for id in trials_of(experiment_id, size):
            yield trial_requested(experiment_id, id)
            yield from life(experiment_id, id)


def life(experiment_id: int, id: int) -> Iterable[Any]:
    """The events of a trial."""
    yield made(experiment_id, id)
    batch = ReportBatch(
        trial_id=id,
        experiment_id=experiment_id,
        run=0,
        number=0,
        searcher_metric="loss",
        smaller_is_better=True,
        series=[Series("training", [1, 2], [1.0, 1.0], {"loss": [1.0, 0.5]}, [])],
    )
    yield JudgedBatch(batch)
    for steps in (1, 2):
        yield metrics.Validated(
            trial_id=id, number=steps, run=0, steps_completed=steps, metric=1.0 / steps, reported_at=1.0
        )
    yield trial.CheckpointStored(
        trial_id=id,
        experiment_id=experiment_id,
        run=0,
        task_id=f"{experiment_id}.r{id}",
        allocation_id="",
        uuid=f"c{id}",
        resources={"model": 7},
        metadata={},
        steps_completed=2,
    )
    yield searcher.TrialEnded(trial_id=id, state="COMPLETED", restarts=0, reason=REASON)
    yield metrics.Settled(trial_id=id, reason=REASON)


def trial_requested(experiment_id: int, id: int) -> searcher.TrialRequested:
    """A trial is requested."""
    request_id = f"r{id}"
    return searcher.TrialRequested(
        experiment_id=experiment_id, request_id=request_id, hparams={}, reason=REASON
    )


def made(experiment_id: int, id: int) -> searcher.TrialCreated:
    """A trial is created."""
    return searcher.TrialCreated(
        trial_id=id,
        experiment_id=experiment_id,
        request_id=f"r{id}",
        task_id=f"{experiment_id}.r{id}",
        seed=0,
        hparams={},
        reason=REASON,
    )


def deletion(experiment_id: int, size: Size) -> Iterable[Any]:
    """An experiment is deleted."""
    ids = tuple(trials_of(experiment_id, size))
    tasks = tuple(f"{experiment_id}.r{id}" for id in ids)
    yield searcher.ExperimentDeleting(experiment_id, REASON)
    yield checkpoints.ExperimentEmptied(experiment_id, True, REASON)
    yield searcher.TrialsDeleted(experiment_id, ids, tasks, REASON)
    yield searcher.ExperimentDeleted(experiment_id, "DELETED", REASON)


BENCHMARK = Benchmark(main, Size(), quick=Size(trials=100, large=40, samples=3), positional=("trials",))

if __name__ == "__main__":
    BENCHMARK.run()

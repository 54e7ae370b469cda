"""What services weigh where much has ended: memory, start, and the longest event of new work.

python -m benchmarks.aged [--quick] [FEWER] [TRIALS]
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.histories import Cluster
from benchmarks.kit.table import row
from det_contracts.envelope import Recorded
from det_contracts.events import metrics, searcher, trial, worker
from det_contracts.reports import ReportBatch, Series
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit.migrate import open_database
from services.kit.rules import Rules, every_key
from services.kit.snapshot import Snapshot
from services.metrics.app import RULES as METRICS
from services.metrics.domain import Judged
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER

ALL: dict[str, Rules[Any]] = {
    rules.owner: rules for rules in (SEARCHER, SCHEDULER, METRICS, CHECKPOINTS, GATEWAY)
}
T = TypeVar("T")
EACH = 10
"""Trials of an experiment."""
SHIFTED = {"experiment_id": 1, "trial_id": EACH}
NAMED = ("task_id", "allocation_id", "uuid")
"""Fields that begin with the number of the experiment."""


@dataclass(frozen=True)
class Size:
    fewer: int = 10_000
    trials: int = 100_000
    """That have ended, ten of each experiment."""


def main(size: Size) -> None:
    for owner in ALL:
        with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
            found = {count: aged(owner, count, Path(folder)) for count in (size.fewer, size.trials)}
        for count, said in found.items():
            row(f"{owner}: memory of its state with {count:,} ended trials", said["rss_mib"], "MiB", "< 200")
            row(f"{owner}: start from its database with {count:,} ended trials", said["start_s"], "s", "< 5")
            row(f"{owner}: longest event of a new experiment after {count:,}", said["event_ms"], "ms", "< 5")


def aged(owner: str, count: int, folder: Path) -> dict[str, float]:
    """What one service is like after so many trials: written by one process, read by a fresh one."""
    url = f"sqlite:///{folder / str(count)}.db"
    in_own_process(write, owner, count, url)
    return in_own_process(read, owner, count, url)


def in_own_process(work: Callable[..., T], *words: Any) -> T:
    """Do something in a process that has done nothing else; it holds the imports of this one."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(work, *words).result()


def write(owner: str, count: int, url: str) -> None:
    """Fold a history, and save the state as the service does."""
    rules = ALL[owner]
    state, position = rules.state(), 0
    template = lived()
    for number in range(count // EACH):
        for recorded in again(template, number):
            position += 1
            list(rules.evolve(state, msgspec.structs.replace(recorded, position=position)))
    database = open_database(url, owner)
    snapshot = Snapshot(owner, state.__class__, rules.fold_version)
    records = {key: getattr(state, key[0])[key[1]] for key in every_key(state)}
    with database.engine.begin() as connection:
        snapshot.save(connection, records, {"CONTROL": position})
    database.close()


def read(owner: str, count: int, url: str) -> dict[str, float]:
    """Start from what was saved; then one more experiment is lived."""
    rules = ALL[owner]
    template = list(again(lived(), count // EACH))
    empty, began = rss_mib(), time.perf_counter()
    database = open_database(url, owner)
    with database.engine.connect() as connection:
        state, positions = Snapshot(owner, rules.state, rules.fold_version).load(connection)
    started = time.perf_counter() - began
    longest, position = 0.0, positions["CONTROL"]
    for recorded in template:
        position += 1
        before = time.thread_time()
        for key in list(rules.evolve(state, msgspec.structs.replace(recorded, position=position))):
            rules.react(state, key)
        longest = max(longest, time.thread_time() - before)
    return {"rss_mib": rss_mib() - empty, "start_s": started, "event_ms": 1000 * longest}


def rss_mib() -> float:
    """What this process holds of the memory."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def lived() -> list[Any]:
    """One experiment of ten trials, from its submission until all of its reports are settled."""
    cluster = Cluster()
    cluster.run(EACH)
    found: list[Any] = []
    for event in cluster.log:
        found.append(event)
        match event:
            case trial.OperationCompleted():
                found += reported(event)
            case searcher.TrialEnded():
                found.append(metrics.Settled(trial_id=event.trial_id, reason="all its reports are known"))
    return found


def reported(done: trial.OperationCompleted) -> Iterator[Any]:
    """A report, and what follows from it."""
    series = Series("validation", [done.length], [1.0], {"loss": [0.5]}, [])
    yield Judged(
        ReportBatch(
            trial_id=done.trial_id,
            experiment_id=1,
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
        metric=0.5,
        reported_at=1.0,
    )


def again(template: list[Any], number: int) -> Iterator[Recorded]:
    """The same once more, in the experiment that comes so many later; the worker is there from the start."""
    for place, event in enumerate(template):
        if isinstance(event, worker.WorkerRegistered) and number:
            continue
        stream = "REPORTS" if isinstance(event, Judged) else "CONTROL"
        yield Recorded(place, shifted(event, number), "", "", 1_000_000.0 + number, "", stream)


def shifted(event: Any, number: int) -> Any:
    """An event with the ids of another experiment."""
    if isinstance(event, Judged):
        return Judged(shifted(event.batch, number))
    changed: dict[str, Any] = {
        name: value + number * SHIFTED[name]
        for name in SHIFTED
        if isinstance(value := getattr(event, name, None), int)
    }
    named: dict[str, str] = {name: value for name in NAMED if (value := getattr(event, name, None))}
    changed |= {name: f"{number + 1}{value.removeprefix('1')}" for name, value in named.items()}
    return msgspec.structs.replace(event, **changed)


BENCHMARK = Benchmark(main, Size(), quick=Size(fewer=20, trials=40), given=("fewer", "trials"))

if __name__ == "__main__":
    BENCHMARK.run()

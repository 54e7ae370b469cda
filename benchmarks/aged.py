"""What services cost after a long history: memory, start, and the slowest event of new work.

python -m benchmarks.aged [--quick] [FEWER] [TRIALS]
"""

from __future__ import annotations

import asyncio
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
from services.kit.cancellation import cancel_and_wait
from services.kit.database import Database
from services.kit.migrate import open_database
from services.kit.pager import Pager
from services.kit.rules import Key, Rules
from services.kit.snapshot_store import DatabaseSaver
from services.metrics.app import RULES as METRICS
from services.metrics.domain import JudgedBatch
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER

ALL: dict[str, Rules[Any]] = {
    rules.owner: rules for rules in (SEARCHER, SCHEDULER, METRICS, CHECKPOINTS, GATEWAY)
}
T = TypeVar("T")
EACH = 10
"""Trials per experiment."""
SHIFTED = {"experiment_id": 1, "trial_id": EACH}
NAMED = ("task_id", "allocation_id", "uuid")
"""Fields that begin with the number of the experiment."""


@dataclass(frozen=True)
class Size:
    fewer: int = 10_000
    trials: int = 100_000
    """Finished trials, ten per experiment."""


def main(size: Size) -> None:
    for owner in ALL:
        with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
            measurements = {count: aged(owner, count, Path(folder)) for count in (size.fewer, size.trials)}
        for count, measurement in measurements.items():
            row(
                f"{owner}: memory of its state with {count:,} ended trials",
                measurement["rss_mib"],
                "MiB",
                "< 200",
            )
            row(
                f"{owner}: start from its database with {count:,} ended trials",
                measurement["start_s"],
                "s",
                "< 5",
            )
            row(
                f"{owner}: longest event of a new experiment after {count:,}",
                measurement["event_ms"],
                "ms",
                "< 5",
            )


def aged(owner: str, count: int, folder: Path) -> dict[str, float]:
    """Measures one service after so many trials: written by one process, read by a fresh one."""
    url = f"sqlite:///{folder / str(count)}.db"
    in_own_process(write, owner, count, url)
    return in_own_process(read, owner, count, url)


def in_own_process(work: Callable[..., T], *words: Any) -> T:
    """Run something in a process that has done nothing else, with the imports of this one."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(work, *words).result()


def write(owner: str, count: int, url: str) -> None:
    """Fold a history, and save the state as the service does."""
    asyncio.run(_live(owner, count, url))


async def _live(owner: str, count: int, url: str) -> None:
    rules, template = ALL[owner], lived()
    database = open_database(url, owner)
    saver = _saver(rules, database)
    saving = asyncio.create_task(saver.run())
    life = Life(rules, saver, (await saver.load())[0], {"CONTROL": 0})
    for number in range(count // EACH):
        await life.take(list(again(template, number)))
    await saver.wait_for_position(life.positions["CONTROL"], within_s=600)
    # Excess records leave the memory; that they did is saved with the next portion.
    left = -1
    while left != life.left:
        left = life.left
        await life.take([])
    await saver.wait_for_position(life.positions["CONTROL"], within_s=600)
    await cancel_and_wait(saving)
    database.close()


def _saver(rules: Rules[Any], database: Database) -> DatabaseSaver:
    return DatabaseSaver(
        database, rules.owner, rules.state, fold_version=rules.fold_version, roots=rules.roots
    )


class Life:
    """Folds like `services.kit.runner`, without a log."""

    def __init__(
        self, rules: Rules[Any], saver: DatabaseSaver, state: Any, positions: dict[str, int]
    ) -> None:
        self.positions = positions
        self.longest = 0.0
        """Maximum processor seconds for one event and its consequences."""
        self._rules, self._saver, self._state = rules, saver, state
        self._pager: Pager[Any] | None = None
        if rules.roots is not None:
            self._pager = Pager(
                rules,
                saver,
                rules.roots,
                on_fault=print,
                calls_for_decision=lambda state, key: bool(rules.react(state, key)),
            )
            self._pager.attach(state, positions)

    @property
    def left(self) -> int:
        """How many roots have left the memory."""
        return 0 if self._pager is None else self._pager.roots_evicted

    async def take(self, portion: list[Recorded]) -> None:
        """Fold a portion of events, save them, and page out inactive records."""
        moved: dict[Key, None] = {}
        if self._pager is not None:
            await self._pager.load_for(recorded.event for recorded in portion)
        for recorded in portion:
            moved |= dict.fromkeys(self._fold(recorded))
        await self._saver.changed(self._state, moved, portion, dict(self.positions))
        if self._pager is not None:
            self._pager.evict_idle({}, ())
        await asyncio.sleep(0)

    def _fold(self, recorded: Recorded) -> list[Key]:
        self.positions["CONTROL"] += 1
        before = time.thread_time()
        at = msgspec.structs.replace(recorded, position=self.positions["CONTROL"])
        keys = list(self._rules.evolve(self._state, at))
        for key in keys:
            self._rules.react(self._state, key)
        self.longest = max(self.longest, time.thread_time() - before)
        if self._pager is not None:
            self._pager.record_changes(keys)
        return keys


def read(owner: str, count: int, url: str) -> dict[str, float]:
    """Start from the saved state, then play one more experiment."""
    return asyncio.run(_go_on(owner, count, url))


async def _go_on(owner: str, count: int, url: str) -> dict[str, float]:
    rules = ALL[owner]
    template = list(again(lived(), count // EACH))
    empty, began = rss_mib(), time.perf_counter()
    database = open_database(url, owner)
    saver = _saver(rules, database)
    state, positions = await saver.load()
    life = Life(rules, saver, state, {"CONTROL": positions["CONTROL"]})
    started = time.perf_counter() - began
    await life.take(template)
    return {"rss_mib": rss_mib() - empty, "start_s": started, "event_ms": 1000 * life.longest}


def rss_mib() -> float:
    """Resident memory of this process."""
    line = next(
        status_line
        for status_line in Path("/proc/self/status").read_text().splitlines()
        if status_line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


def lived() -> list[Any]:
    """One experiment of ten trials, from its submission until all its reports are settled."""
    cluster = Cluster()
    cluster.run(EACH)
    events: list[Any] = []
    for event in cluster.log:
        events.append(event)
        match event:
            case trial.OperationCompleted():
                events += reported(event)
            case searcher.TrialEnded():
                events.append(metrics.Settled(trial_id=event.trial_id, reason="all its reports are known"))
    return events


def reported(done: trial.OperationCompleted) -> Iterator[Any]:
    """A report and its consequences."""
    series = Series("validation", [done.length], [1.0], {"loss": [0.5]}, [])
    yield JudgedBatch(
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
    """The same events for a later experiment; the worker exists from the start."""
    for place, event in enumerate(template):
        if isinstance(event, worker.WorkerRegistered) and number:
            continue
        stream = "REPORTS" if isinstance(event, JudgedBatch) else "CONTROL"
        yield Recorded(place, shifted(event, number), "", "", 1_000_000.0 + number, "", stream)


def shifted(event: Any, number: int) -> Any:
    """An event with the ids of another experiment."""
    if isinstance(event, JudgedBatch):
        return JudgedBatch(shifted(event.batch, number))
    changed: dict[str, Any] = {
        name: value + number * SHIFTED[name]
        for name in SHIFTED
        if isinstance(value := getattr(event, name, None), int)
    }
    named: dict[str, str] = {name: value for name in NAMED if (value := getattr(event, name, None))}
    changed |= {name: f"{number + 1}{value.removeprefix('1')}" for name, value in named.items()}
    return msgspec.structs.replace(event, **changed)


BENCHMARK = Benchmark(main, Size(), quick=Size(fewer=20, trials=40), positional=("fewer", "trials"))

if __name__ == "__main__":
    BENCHMARK.run()

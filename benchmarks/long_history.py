"""What a cluster is like where very much has ended: start, memory, lists, and a start of something new.

python -m benchmarks.long_history [--quick] [TRIALS] [LIVE]
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.aged import ALL as RULES
from benchmarks.aged import Life, in_own_process
from benchmarks.kit.aged_cluster import LOGGED_CYCLES, SERVICES, AgedCluster, aged_cluster
from benchmarks.kit.ages import CYCLE_S, Cycle, Shift, recorded
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import percentile, row
from benchmarks.launch import NO_OP, Starts
from services.kit.migrate import open_database
from services.kit.snapshot_store import DatabaseSaver
from services.webhooks.app import RULES as WEBHOOKS

SMALLER = (100, 10, 1)
"""The sizes that are compared: so many times fewer trials."""
HOUR_S = 3600.0
FILTER = (
    '{"filterGroup":{"kind":"group","conjunction":"and","children":['
    '{"kind":"field","columnName":"name","operator":"contains","value":"plum"},'
    '{"kind":"field","columnName":"searcherMetricsVal","operator":">","value":0}]}}'
)
LISTS = (
    "experiments?limit=100",
    "experiments?limit=100&sortBy=SORT_BY_SEARCHER_METRIC_VAL",
    "experiments?limit=100&name=plum&labels=fig",
    "experiments?limit=100&states=STATE_ACTIVE",
    "experiments-search?limit=100",
    "experiments-search?limit=100&lean=true&sort=searcherMetricsVal%3Ddesc&filter=" + FILTER,
    "experiments-search?limit=100&lean=true&sort=hp.lr%3Dasc",
    "experiments-search?limit=100&lean=true&sort=validation.loss.min",
    "experiment/labels",
    "projects/1/columns",
    "projects/1/experiments/metric-ranges",
    "workspaces/1",
    "workspaces/1/projects",
    "tasks",
    "job-queues?limit=100",
    "agents",
    "master/audit",
    "events?limit=100",
)
"""What the web UI and `det` ask for, of all that there is."""
OF_ONE = (
    "experiments/{experiment}",
    "experiments/{experiment}/trials?limit=100",
    "experiments/{experiment}/trials?limit=100&sortBy=SORT_BY_BEST_VALIDATION_METRIC",
    "experiments/{experiment}/checkpoints?limit=100",
    "experiments/{experiment}/rungs",
    "trials/{trial}",
    "trials/{trial}/checkpoints",
    "trials/{trial}/workloads",
)
"""Of one experiment that ended long ago."""
USAGE = "resources/allocation/aggregated?startDate={first}&endDate={last}"


@dataclass(frozen=True)
class Size:
    trials: int = 1_000_000
    """That have ended; a hundredth and a tenth of it are shown, too."""
    live: int = 1_000
    experiments: int = 20
    """Of a cycle, which is lived again and again."""
    each: int = 100
    """Trials of an experiment."""
    times: int = 20
    launches: int = 15


@dataclass(frozen=True)
class Old:
    """A cluster with a history, as it is looked at."""

    cluster: AgedCluster
    size: Size
    cycle: Cycle
    first: Shift
    """Of the first cycle."""
    empty_ms: float
    """From submit to the first line, before there was any history."""

    def show(self, trials: int) -> None:
        """Print the rows of one size."""
        cycles = trials // self.cycle.trials
        self.cluster.grow(cycles)
        with_so_many = f"after {trials:,} ended trials"
        events = {name: self._longest_event(name, cycles) for name in SERVICES}
        self.cluster.up()
        try:
            for name in SERVICES:
                ready, rss = self.cluster.restarted(name), self.cluster.rss_mib(name)
                row(f"{name}: ready {with_so_many}", ready, "s", "< 5")
                row(f"{name}: memory of the process then", rss, "MiB", "< 250")
                row(f"{name}: longest event of a new experiment then", events[name], "ms", "< 5")
            self._show_answers(cycles, with_so_many)
        finally:
            self.cluster.down()

    def _show_answers(self, cycles: int, with_so_many: str) -> None:
        rest, folder = Rest(address(self.cluster.home)), self.cluster.home.path
        listed = {path: _read_times(rest, path, self.size.times) for path in LISTS}
        slowest = max(listed, key=lambda path: percentile(listed[path][1:], 0.95))
        begun = max(times[0] for times in listed.values())
        ratio = f"of {len(LISTS)}: {slowest.partition('?')[0]}; first {begun:.0f} ms"
        row(f"slowest list {with_so_many}, p95", percentile(listed[slowest][1:], 0.95), "ms", "< 200", ratio)
        first, again = self._of_old_ones(rest, cycles)
        row(f"anything of an experiment that ended long ago {with_so_many}, first time, p95", first, "ms")
        row("the same again, p95", again, "ms", "< 200")
        month = USAGE.format(
            first=time.strftime("%Y-%m-%d", time.gmtime(self.first.at)),
            last=time.strftime("%Y-%m-%d", time.gmtime(self.first.at + 30 * 24 * HOUR_S)),
        )
        row(f"use of slots in a month {with_so_many}", percentile(_read_times(rest, month, 3), 0.95), "ms")
        rss = self.cluster.rss_mib("gateway")
        row("gateway: memory of the process after all of these", rss, "MiB", "< 250")
        line = _launched(Starts(rest, folder), self.size.launches)
        ratio = f"{self.empty_ms:.3g} ms on the empty cluster"
        row(f"submit to first line {with_so_many}, median", line, "ms", "", ratio)

    def _of_old_ones(self, rest: Rest, cycles: int) -> tuple[float, float]:
        """Milliseconds of a first request about an old experiment, and of one that follows, p95."""
        first, again = [], []
        for number, path in enumerate(OF_ONE):
            # Each has an experiment of its own to bring.
            place = number * max(1, cycles * self.cycle.experiments // len(OF_ONE))
            experiment = self.first.experiments + 1 + min(place, cycles * self.cycle.experiments - 1)
            trial = self.first.trials + 1 + (experiment - self.first.experiments - 1) * self.cycle.each
            took = _read_times(rest, path.format(experiment=experiment, trial=trial), 3)
            first.append(took[0])
            again += took[1:]
        return percentile(first, 0.95), percentile(again, 0.95)

    def _longest_event(self, name: str, cycles: int) -> float:
        """Milliseconds of the longest event of one experiment more, and what follows from it."""
        shift = self.cycle.later(self.first, cycles)
        alone = Cycle(1, self.cycle.each)
        return in_own_process(_live_on, name, f"sqlite:///{self.cluster.database(name)}", alone, shift)


def _live_on(name: str, url: str, cycle: Cycle, shift: Shift) -> float:
    return asyncio.run(_longest(name, url, cycle, shift))


async def _longest(name: str, url: str, cycle: Cycle, shift: Shift) -> float:
    rules: Any = {**RULES, WEBHOOKS.owner: WEBHOOKS}[name]
    database = open_database(url, name)
    # It is not let run: nothing of this is saved.
    saver = DatabaseSaver(
        database, name, rules.state, fold_version=rules.fold_version, roots=rules.roots, backlog_limit=10**9
    )
    state, positions = await saver.load()
    life = Life(rules, saver, state, dict(positions))
    await life.take(list(recorded(cycle.events, shift)))
    database.close()
    return 1000 * life.longest


def _read_times(rest: Rest, path: str, times: int) -> list[float]:
    """Milliseconds of each answer."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        rest.get(path)
        took.append(1000 * (time.perf_counter() - began))
    return took


def _launched(starts: Starts, times: int) -> float:
    """Milliseconds from submit to the first line, in the middle."""
    starts.warm_up(NO_OP)
    return 1000 * statistics.median(starts.submit(NO_OP, True)["line"] for _ in range(times))


def main(size: Size) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder,
        aged_cluster(Path(folder)) as cluster,
    ):
        cycle = Cycle(size.experiments, size.each)
        rest = Rest(address(cluster.home))
        empty_ms = _launched(Starts(rest, Path(folder)), size.launches)
        begun = len(rest.get("experiments?limit=1000&lean=true")["experiments"])
        at = float(int(time.time()) - size.trials // cycle.trials * CYCLE_S - 60 * 24 * HOUR_S)
        experiments = size.live // size.each
        live = recorded(cycle.live(experiments), Shift(begun, begun, at))
        first = Shift(begun + experiments, begun + experiments * size.each, at + HOUR_S)
        cluster.tell(live, cycle, first)
        old = Old(cluster, size, cycle, first, empty_ms)
        for share in SMALLER:
            old.show(max(size.trials // share, LOGGED_CYCLES * cycle.trials))


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(trials=64, live=2, experiments=2, each=2, times=3, launches=1),
    positional=("trials", "live"),
)

if __name__ == "__main__":
    BENCHMARK.run()

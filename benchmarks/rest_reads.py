"""Reads over REST in a cluster with very many experiments, at a rate that does not wait for answers.

python -m benchmarks.rest_reads [--quick] [EXPERIMENTS] [PER_SECOND] [SECONDS]
"""

from __future__ import annotations

import asyncio
import collections
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx

from benchmarks.kit.aged_cluster import AgedCluster, aged_cluster
from benchmarks.kit.ages import CYCLE_S, Cycle, Shift, recorded
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address
from benchmarks.kit.processor import processor_ms
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import percentile, row

DAY_S = 24 * 3600.0
PATIENCE_S = 120.0
"""A request that is not answered by then has failed."""
FILTER = quote(
    '{"filterGroup":{"kind":"group","conjunction":"and","children":['
    '{"kind":"field","columnName":"name","operator":"contains","value":"plum"},'
    '{"kind":"field","columnName":"searcherMetricsVal","operator":">","value":0}]}}'
)
READS = {
    "who is signed in": "me",
    "agents": "agents",
    "the job queue": "job-queues?limit=100",
    "tasks": "tasks",
    "workspaces": "workspaces",
    "a workspace's projects": "workspaces/1/projects",
    "columns of a project": "projects/1/columns",
    "labels": "experiment/labels",
    "a page of experiments": "experiments?limit=100",
    "a page of experiments, by metric": "experiments?limit=100&sortBy=SORT_BY_SEARCHER_METRIC_VAL",
    "a page of experiments, by name and label": "experiments?limit=100&name=plum&labels=fig",
    "a page of active experiments": "experiments?limit=100&states=STATE_ACTIVE",
    "a page of the table": "experiments-search?limit=100&lean=true",
    "a page of the table, filtered": "experiments-search?limit=100&lean=true&filter=" + FILTER,
    "a page of the table, by hyperparameter": "experiments-search?limit=100&lean=true&sort=hp.lr%3Dasc",
    "an experiment": "experiments/{experiment}",
    "its trials": "experiments/{experiment}/trials?limit=100",
    "its checkpoints": "experiments/{experiment}/checkpoints?limit=100",
    "a trial": "trials/{trial}",
    "its validations": "trials/{trial}/workloads",
    "its curve": "series?trialIds={trial}&names=loss&group=validation&width=1000",
    "its log": "trials/{trial}/logs/page",
    "the newest events": "events?limit=100",
}
"""What people call it, and its path; each experiment and trial that is asked for is another one."""


@dataclass(frozen=True)
class Size:
    experiments: int = 100_000
    per_second: float = 50.0
    seconds: float = 60.0
    alone: int = 10
    """Requests of each kind, one after another, whose processor time is measured."""
    each: int = 2
    """Trials of an experiment."""
    batch: int = 20
    """Experiments of a cycle, which is lived again and again."""


class Chance:
    """Draws experiments of a long history, and the paths of reads about them."""

    def __init__(self, first: Shift, size: Size) -> None:
        self._first = first
        self._size = size
        self._random = random.Random(7)

    def path(self, name: str) -> str:
        """A path of that read."""
        number = self._random.randrange(self._size.experiments)
        experiment = self._first.experiments + 1 + number
        return READS[name].format(
            experiment=experiment, trial=self._first.trials + 1 + number * self._size.each
        )

    def names(self) -> Iterator[str]:
        """All reads, each as often as any other, without end."""
        names = list(READS)
        while True:
            self._random.shuffle(names)
            yield from names


class Answered(NamedTuple):
    """One request, from the moment when it was due until its answer was read."""

    name: str
    ms: float
    error: str
    """Empty if it was answered as it should be."""


def main(size: Size) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder,
        aged_cluster(Path(folder)) as cluster,
    ):
        chance = Chance(grown(cluster, size), size)
        cluster.up()
        rest = Rest(address(cluster.home))
        spent = {name: alone(cluster, rest, chance, name, size.alone) for name in READS}
        before, began = sum(processor_ms(cluster.home).values()), time.perf_counter()
        answers = asyncio.run(open_loop(rest, chance, size))
        took = time.perf_counter() - began
        busy = (sum(processor_ms(cluster.home).values()) - before) / 1e3
    tell(answers, spent, busy / took)


def grown(cluster: AgedCluster, size: Size) -> Shift:
    """Let a young cluster get old, without running; returns where its history begins."""
    cycle, cycles = Cycle(size.batch, size.each), size.experiments // size.batch
    at = float(int(time.time()) - cycles * CYCLE_S - 2 * DAY_S)
    first = Shift(1, size.each, at + 3600)
    cluster.tell(recorded(cycle.live(1), Shift(0, 0, at)), cycle, first)
    cluster.grow(cycles)
    return first


def alone(cluster: AgedCluster, rest: Rest, chance: Chance, name: str, times: int) -> float:
    """Milliseconds of a processor that one such read costs the cluster, after a first one."""
    rest.read(chance.path(name))
    before = sum(processor_ms(cluster.home).values())
    for _ in range(times):
        rest.read(chance.path(name))
    return (sum(processor_ms(cluster.home).values()) - before) / times


async def open_loop(rest: Rest, chance: Chance, size: Size) -> list[Answered]:
    """Ask at a constant rate, whether or not earlier requests have been answered."""
    names, count = chance.names(), int(size.per_second * size.seconds)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    async with httpx.AsyncClient(
        base_url=rest.base, headers=rest.headers, timeout=PATIENCE_S, limits=limits
    ) as client:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            running = []
            for number in range(count):
                due = began + number / size.per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                name = next(names)
                running.append(group.create_task(ask(client, name, chance.path(name), due)))
    return [task.result() for task in running]


async def ask(client: httpx.AsyncClient, name: str, path: str, due: float) -> Answered:
    """One request; what it waited before it could be sent counts as well."""
    try:
        answer = await client.get(path)
        error = "" if answer.is_success else f"{answer.status_code}: {answer.text[:200]}"
    except httpx.HTTPError as failed:
        error = repr(failed)
    return Answered(name, 1e3 * (time.perf_counter() - due), error)


def tell(answers: list[Answered], spent: dict[str, float], cores: float) -> None:
    """Print a row for each read, and for all of them."""
    for name in READS:
        _row(
            name,
            [answer.ms for answer in answers if answer.name == name],
            f"{spent[name]:.3g} ms of a processor",
        )
    _row("all reads", [answer.ms for answer in answers], f"{cores:.2f} processors")
    row("processor time of a read", sum(spent.values()) / len(spent), "ms")
    failed = collections.Counter(f"{answer.name}: {answer.error}" for answer in answers if answer.error)
    row("reads that were answered", 100 * (1 - failed.total() / len(answers)), "%", "= 100")
    for error, times in failed.most_common():
        print(f"{times} x {error}", file=sys.stderr)


def _row(name: str, took: list[float], cost: str) -> None:
    ratio = f"p50 {percentile(took, 0.5):.3g} ms; p99 {percentile(took, 0.99):.3g} ms; {cost}"
    row(f"{name}: p95", percentile(took, 0.95), "ms", "< 100", ratio)


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(experiments=16, per_second=20, seconds=2, alone=1, batch=2),
    positional=("experiments", "per_second", "seconds"),
)

if __name__ == "__main__":
    BENCHMARK.run()

"""A fleet: 10,000 jobs wait while their pool grows from nothing to 1,000 workers of 8 slots and back.

The scheduler uses three real brokers that replicate the log; this process plays workers and users. So the
figures include the cost of three copies on one machine, but none of starting scripts.

python -m benchmarks.fleet [workers] [jobs] [--quick]
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]
import uvloop

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import median, percentile, row
from benchmarks.placements import SLOTS, Cluster
from det_contracts.commands import ConfigurePools
from det_contracts.events import searcher, worker
from det_contracts.events.scheduler import PoolSettings
from det_contracts.queries import Jobs
from services.kit.cancellation import cancel_and_wait
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.rules import Call
from services.scheduler import queries
from tests.fixtures.three_brokers import ThreeBrokers

POOL = "default"
CONFIG = {"resources": {"resource_pool": POOL, "priority": 42}}
OFFERED = tuple(worker.Slot(n, "cpu", f"cpu-{n}", "CPU") for n in range(SLOTS))


@dataclass(frozen=True)
class Size:
    workers: int = 1000
    jobs: int = 10_000
    steps: int = 10
    """Steps in which the pool grows."""
    probes: int = 5
    """Jobs submitted and lists requested in each step."""


class Probes:
    """What individual users wait for meanwhile, in milliseconds."""

    def __init__(self) -> None:
        self.submit: list[float] = []
        self.list: list[float] = []
        self.submit_cpu: list[float] = []
        """Processor time of the same, which says the same on a busy machine."""
        self.list_cpu: list[float] = []


def host(number: int) -> worker.WorkerRegistered:
    """A worker registers."""
    return worker.WorkerRegistered(
        worker_id=f"w{number}",
        session="s",
        pool=POOL,
        address="",
        version="",
        slots=OFFERED,
        reads_after=0,
        running=(),
    )


def job(number: int) -> searcher.ExperimentCreated:
    """A user submits an experiment."""
    return searcher.ExperimentCreated(
        experiment_id=number, user="b", config=CONFIG, original_config="", reason="bench"
    )


async def until(holds: Callable[[], bool]) -> None:
    """Wait until the scheduler has folded something."""
    while not holds():
        await asyncio.sleep(0.002)


async def probe(cluster: Cluster, probes: Probes, times: int) -> None:
    """Submit a job and view the queue, that many times."""
    state = cluster.runner.state
    for _ in range(times):
        cluster.jobs += 1
        began, began_cpu = time.perf_counter(), time.process_time()
        (some,) = cluster.requests(1)
        task = f"{cluster.jobs}.t{some.trial_id}"
        mine = {"experiment_id": cluster.jobs, "task_id": task, "allocation_id": f"{task}.1"}
        request = msgspec.structs.replace(some, **mine)
        await cluster.say([job(cluster.jobs), request])
        await until(lambda id=request.allocation_id: id in state.allocations)  # type: ignore[misc]
        submitted, submitted_cpu = time.perf_counter(), time.process_time()
        queries.jobs(state, Jobs(pool=POOL))
        probes.submit.append((submitted - began) * 1e3)
        probes.submit_cpu.append((submitted_cpu - began_cpu) * 1e3)
        probes.list.append((time.perf_counter() - submitted) * 1e3)
        probes.list_cpu.append((time.process_time() - submitted_cpu) * 1e3)


async def grow(cluster: Cluster, size: Size, probes: Probes) -> tuple[list[float], list[float]]:
    """Placements per second, and processor time for each in milliseconds, in each step."""
    held = cluster.runner.state.index.books[POOL]
    rates, spent, each = list[float](), list[float](), size.workers // size.steps
    for step in range(size.steps):
        before, began, began_cpu = len(held.running), time.perf_counter(), time.process_time()
        wanted = min((step + 1) * each * SLOTS, size.jobs)
        await cluster.say(host(n) for n in range(step * each, (step + 1) * each))
        await until(lambda wanted=wanted: len(held.running) >= wanted)  # type: ignore[misc]
        rates.append((wanted - before) / (time.perf_counter() - began))
        spent.append((time.process_time() - began_cpu) * 1e3 / (wanted - before))
        await probe(cluster, probes, size.probes)
    return rates, spent


async def shrink(cluster: Cluster, workers: Iterable[int]) -> float:
    """Workers per second that leave, with their runs."""
    state, gone = cluster.runner.state, [f"w{n}" for n in workers]
    began = time.perf_counter()
    await cluster.say(worker.WorkerLeft(id, "s") for id in gone)
    await until(lambda: all(state.workers[id].presence != "here" for id in gone if id in state.workers))
    return len(gone) / (time.perf_counter() - began)


def memory() -> float:
    """Memory of this process in MiB."""
    return float(psutil.Process().memory_info().rss) / 2**20


@contextlib.asynccontextmanager
async def scheduler(folder: Path) -> AsyncIterator[tuple[Cluster, list[psutil.Process]]]:
    """A scheduler that leads, and the three brokers that it is on."""
    brokers = ThreeBrokers(folder)
    try:
        client = await brokers.start().connect()
        await ensure_streams(client.jetstream(), replicas=3)
        cluster = Cluster(JetStreamLog(client), jobs=0)
        task = asyncio.create_task(cluster.runner.run())
        await cluster.runner.ready.wait()
        yield cluster, [psutil.Process(brokers.pid(name)) for name in brokers.names]
        await cancel_and_wait(task)
        await client.close()
    finally:
        brokers.close()


async def measured(size: Size) -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        async with scheduler(Path(folder) / "brokers") as (cluster, brokers):
            await _measured(cluster, size)
            used = [sum(broker.cpu_times()[:2]) for broker in brokers]
            held = [broker.memory_info().rss / 2**20 for broker in brokers]
        row(
            "processor time of the scheduler, and of the workers and users that this process plays",
            time.process_time(),
            "s",
        )
        row("processor time of the three brokers", sum(used), "s")
        row("memory of the largest broker", max(held), "MiB", "< 500")


async def _measured(cluster: Cluster, size: Size) -> None:
    state: Any = cluster.runner.state
    pools = {POOL: PoolSettings(scheduler="fair_share")}
    await cluster.runner.command(ConfigurePools(pools=pools), Call("c", time.time()))
    before, began = memory(), time.perf_counter()
    cluster.jobs = size.jobs
    await cluster.say(job(n) for n in range(1, size.jobs + 1))
    await cluster.say(cluster.requests(size.jobs))
    await until(lambda: len(state.allocations) >= size.jobs)
    row(f"{size.jobs:,} jobs taken into the queue", size.jobs / (time.perf_counter() - began), "/s")
    probes = Probes()
    rates, spent = await grow(cluster, size, probes)
    placed = f"placements while the pool grows to {size.workers:,} workers"
    row(f"{placed}, first step", rates[0], "/s", ">= 500")
    row(f"{placed}, last step", rates[-1], "/s", ">= 500", f"{rates[-1] / rates[0]:.2f} of the first")
    row("processor time of a placement, first step", spent[0], "ms")
    row(
        "processor time of a placement, last step",
        spent[-1],
        "ms",
        "",
        f"{spent[-1] / spent[0]:.2f} of the first",
    )
    row("a job more is in the queue, p99", percentile(probes.submit, 0.99), "ms", "< 100")
    row("processor time of that, median", median(probes.submit_cpu), "ms")
    row("the queue is listed by the scheduler, p99", percentile(probes.list, 0.99), "ms", "< 500")
    row("processor time of that, p99", percentile(probes.list_cpu, 0.99), "ms")
    row(f"workers that leave, of {size.workers:,}", await shrink(cluster, range(size.workers)), "/s")
    row("memory of its state, with all that this process is besides", memory() - before, "MiB", "< 500")


def main(size: Size) -> None:
    uvloop.run(measured(size))


BENCHMARK = Benchmark(
    main, Size(), quick=Size(workers=4, jobs=40, steps=2, probes=2), positional=("workers", "jobs")
)

if __name__ == "__main__":
    BENCHMARK.run()

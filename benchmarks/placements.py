"""Placements per second through the real log, on 1,000 simulated workers of 8 slots.

First an idle cluster is filled, then requests keep coming while workers state each start and end.

python -m benchmarks.placements [--quick]
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks.decisions import single_appends
from benchmarks.kit.appending import append_until_stored
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.live import Broker, connected, running_broker
from benchmarks.kit.table import row
from det_contracts import codec, subjects
from det_contracts.commands import ConfigurePools
from det_contracts.events import Decision, scheduler, searcher, worker
from det_contracts.events.scheduler import PoolSettings, SchedulerType
from services.kit.log import Draft, Fence
from services.kit.log_jetstream import JetStreamLog
from services.kit.rules import Call
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from services.scheduler.app import RULES

SLOTS = 8
BATCH = 900


@dataclass(frozen=True)
class Size:
    workers: int = 1000
    jobs: int = 100
    """Few enough that new requests find room: each job reserves slots for trials that are expected back."""
    turned_over: int = 4000
    singles: int = 500


class Cluster:
    """A scheduler on a real broker; this process plays everybody else."""

    def __init__(self, journal: JetStreamLog, jobs: int) -> None:
        self.journal, self.jobs = journal, jobs
        self.runner = Runner(RULES, journal, NullSaver(RULES.state))
        self._fence = 0
        self._number = 0
        self._requested = 0

    async def say(self, events: Iterable[Any]) -> None:
        """Append in whole batches, as another service would."""
        events = list(events)
        for at in range(0, len(events), BATCH):
            some = events[at : at + BATCH]
            lead = Decision(owner="bench", seen=0, count=len(some), replica="b")
            drafts = [self._draft(event) for event in (lead, *some)]
            last = await append_until_stored(self.journal, drafts, Fence(drafts[0].subject, self._fence))
            self._fence = last - len(drafts) + 1

    async def state(self, event: Any) -> None:
        """Append one fact, as a worker does."""
        await self.journal.append(self._draft(event))

    def _draft(self, event: Any) -> Draft:
        self._number += 1
        id = f"b-{self._number}"
        about = subjects.decision("bench") if isinstance(event, Decision) else codec.subject_of(event)
        return Draft(about, codec.encode(event, id=id, actor="bench", at=time.time()), id)

    def requests(self, count: int) -> Iterable[searcher.RunRequested]:
        """That many more trials of one slot."""
        for _ in range(count):
            self._requested += 1
            n = self._requested
            job = 1 + n % self.jobs
            yield searcher.RunRequested(
                trial_id=n,
                experiment_id=job,
                task_id=f"{job}.t{n}",
                allocation_id=f"{job}.t{n}.1",
                run=1,
                slots=1,
                pool="default",
                priority=42,
                reason="bench",
            )

    async def until(self, held: int) -> None:
        """Wait until that many allocations hold slots."""
        book = self.runner.state.index.books["default"]
        while len(book.running) < held:
            await asyncio.sleep(0.002)


async def fill(cluster: Cluster, kind: SchedulerType, workers: int) -> float:
    """Placements per second into an idle cluster."""
    pools = {"default": PoolSettings(scheduler=kind)}
    await cluster.runner.command(ConfigurePools(pools=pools), Call("c", time.time()))
    offered = tuple(worker.Slot(n, "cpu", f"cpu-{n}", "CPU") for n in range(SLOTS))
    hosts = [
        worker.WorkerRegistered(
            worker_id=f"w{n}",
            session="s",
            pool="default",
            address="",
            version="",
            slots=offered,
            reads_after=0,
            running=(),
        )
        for n in range(workers)
    ]
    config = {"resources": {"resource_pool": "", "priority": 42}}
    jobs = [
        searcher.ExperimentCreated(
            experiment_id=n, user="b", config=config, original_config="", reason="bench"
        )
        for n in range(1, cluster.jobs + 1)
    ]
    await cluster.say([*hosts, *jobs])
    capacity = workers * SLOTS
    began = time.perf_counter()
    await cluster.say(cluster.requests(capacity))
    await cluster.until(capacity)
    return capacity / (time.perf_counter() - began)


async def turn_over(cluster: Cluster, count: int) -> float:
    """Placements per second in a full cluster whose workers state every start and every end."""
    state = cluster.runner.state
    _, end = await cluster.journal.bounds(subjects.CONTROL)
    gate = asyncio.Semaphore(256)
    placed = 0
    done = asyncio.Event()

    async def leave(id: str, worker_id: str) -> None:
        async with gate:
            exited = worker.AllocationExited(worker_id=worker_id, allocation_id=id, exit_code=0)
            await cluster.state(exited)

    async def play() -> None:
        nonlocal placed
        async with cluster.journal.read(subjects.CONTROL, after=end) as feed:
            while placed < count:
                for message in (await feed.batch()).messages:
                    event = codec.decode(message.body, message.position).event
                    if isinstance(event, scheduler.AllocationAssigned):
                        placed += 1
                        tasks.create_task(start(event.allocation_id, event.parts[0].worker_id))
        done.set()

    async def start(id: str, worker_id: str) -> None:
        async with gate:
            await cluster.state(worker.AllocationStarted(worker_id, id))

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(play())
        await cluster.say(cluster.requests(count))
        leaving = [(a.id, a.members[0].worker_id) for a in state.allocations.values() if a.members]
        for id, worker_id in leaving[:count]:
            tasks.create_task(leave(id, worker_id))
        await done.wait()
    return count / (time.perf_counter() - began)


async def measure(server: Broker, kind: SchedulerType, size: Size) -> tuple[float, float]:
    """Both measures under one policy."""
    async with connected(server) as client:
        cluster = Cluster(JetStreamLog(client), size.jobs)
        task = asyncio.create_task(cluster.runner.run())
        await cluster.runner.ready.wait()
        rates = await fill(cluster, kind, size.workers), await turn_over(cluster, size.turned_over)
        task.cancel()
        await asyncio.wait([task])
        return rates


def main(size: Size) -> None:
    uvloop.run(measured(size))


async def measured(size: Size) -> None:
    """Print the rows."""
    kinds: tuple[SchedulerType, ...] = ("priority", "fair_share", "round_robin")
    for kind in kinds:
        with running_broker() as server:
            filled, turned = await measure(server, kind, size)
            single = await single_appends(server, size.singles)
        row(f"placements into {size.workers:,} idle workers, {kind}", filled, "/s", ">= 1,000")
        ratio = f"{turned / single:.2f} x single appends"
        row(f"placements while every start and end is stated, {kind}", turned, "/s", "", ratio)


BENCHMARK = Benchmark(main, Size(), quick=Size(workers=3, jobs=2, turned_over=10, singles=10))

if __name__ == "__main__":
    BENCHMARK.run()

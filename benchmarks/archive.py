"""How fast the log moves to the archive and is read from there, and how long decisions pause for it.

python -m benchmarks.archive [--quick] [EVENTS]

Meanwhile another process decides without end, as a service does: it appends a fenced batch, and goes on once
it has read it back. 10,000,000 events take some 10 minutes and 6 GB of the disk.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

import nats

from benchmarks.fold_rate import fold
from benchmarks.kit.appending import append_until_stored
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.histories import Cluster, bodies
from benchmarks.kit.live import Broker, connected, running_broker
from benchmarks.kit.quiet import quiet
from benchmarks.kit.table import row
from det_contracts import codec, subjects
from services.archive.cutting import Cutter, Limits
from services.archive.sealing import Sealer
from services.kit.archive.log import ArchivedLog
from services.kit.archive.segments import Segments
from services.kit.blobs import DirectoryBlobs
from services.kit.log import Draft, Fence, Log
from services.kit.log_jetstream import JetStreamLog
from services.kit.records import read_event
from services.searcher.app import RULES as SEARCHER

CONTROL = subjects.CONTROL
OWNER, DECIDER = "bench", "search"
"""Whose decisions the history begins with, and whose are measured meanwhile."""
BATCH = 999


@dataclass(frozen=True)
class Size:
    events: int = 500_000
    segment: int = 100_000
    trials: int = 200
    """Trials of each search that makes the events."""
    idle_s: float = 5.0
    made: int = 60_000
    """Number of events that are made, and then repeated."""


def main(size: Size) -> None:
    cluster = Cluster()
    while len(cluster.log) < min(size.made, size.events):
        cluster.run(size.trials)
    with quiet(), running_broker() as server, tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measured(server, Segments(DirectoryBlobs(Path(folder))), cluster, size))
        files = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    row("an event in the archive", files / size.events, "bytes")


async def _measured(server: Broker, segments: Segments, cluster: Cluster, size: Size) -> None:
    async with connected(server) as connection, connected(server) as other:
        stream = JetStreamLog(connection)
        await _fill(stream, cluster, size.events)
        idle = await _decided_beside(server, asyncio.sleep(size.idle_s))
        sealer, sealed = Sealer(stream, segments, count=size.segment), 0

        async def seal() -> None:
            nonlocal sealed
            while (header := await sealer.seal()) is not None:
                sealed = header.last

        began = time.perf_counter()
        sealing = await _decided_beside(server, seal())
        row("sealed, and read back", sealed / (time.perf_counter() - began), "events/s")
        cutter = Cutter(
            stream,
            sealer,
            segments,
            Limits(keep_s=0, keep_events=0),
            owners=(OWNER, DECIDER),
            clock=lambda: 1e12,
        )
        began = time.perf_counter()
        cutting = await _decided_beside(server, cutter.cut({OWNER: 10**12}))
        row("cut off the stream", sealed / (time.perf_counter() - began), "events/s")
        for meanwhile, took in (("sealed", sealing), ("cut", cutting)):
            ratio = f"{idle.longest_ms:.3g} ms while it is not; {took.decisions:,} decisions"
            row(f"a decision while the stream is {meanwhile}, p50", took.typical_ms, "ms")
            row(f"a decision while the stream is {meanwhile}, longest", took.longest_ms, "ms", "< 100", ratio)
        log = ArchivedLog(JetStreamLog(other), segments)
        row("read from the archive", await _read(log, sealed), "events/s", ">= 200,000")
        row("a story of one trial", await _story(log), "ms", "< 200")
        rate = await _rebuilt(log, len(cluster.log))
        from_memory = fold(SEARCHER, bodies(cluster.log))
        ratio = f"{rate / from_memory:.2f} of folding alone"
        row("read from the archive and folded by the searcher", rate, "events/s", ">= 200,000", ratio)


class Decided(NamedTuple):
    """How long decisions took, each from its append until it was read back."""

    decisions: int
    typical_ms: float
    longest_ms: float


async def _decided_beside(server: Broker, work: Awaitable[object]) -> Decided:
    """Decide one thing after another in a process of its own, as a service does, while some work is done."""
    context = multiprocessing.get_context("spawn")
    done = context.Event()
    answers, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_decide_until, args=(server.url, done, theirs))
    process.start()
    # Its copy alone is open then, so that its end is noticed here.
    theirs.close()
    try:
        await asyncio.to_thread(answers.recv)
        await work
        done.set()
        took: list[float] = await asyncio.to_thread(answers.recv)
    finally:
        process.kill()
        process.join()
    return Decided(len(took), 1000 * statistics.median(took), 1000 * max(took))


def _decide_until(url: str, done: Event, answers: Connection) -> None:
    asyncio.run(_decide(url, done, answers))


async def _decide(url: str, done: Event, answers: Connection) -> None:
    client = await nats.connect(url)
    log, took, subject = JetStreamLog(client), list[float](), subjects.decision(DECIDER)
    # Of many, each with as many events as an operation that is completed calls for, on a subject of its own.
    drafts = [Draft(f"control.{DECIDER}.thing.{n}.happened", b"{}", "") for n in range(2)]
    newest = await log.last(subject)
    fence = newest.position if newest is not None else 0
    async with log.read(CONTROL, after=await log.end(CONTROL, after=0)) as feed:
        answers.send(None)
        while not done.is_set() or not took:
            began = time.perf_counter()
            batch = [Draft(subject, b"{}", ""), *drafts]
            named = [Draft(draft.subject, draft.body, uuid.uuid4().hex) for draft in batch]
            last = await append_until_stored(log, named, Fence(subject, fence))
            fence, position = last - len(drafts), 0
            while position < last:
                messages = (await feed.batch()).messages
                position = messages[-1].position if messages else position
            took.append(time.perf_counter() - began)
    answers.send(took)
    await client.close()


async def _fill(stream: Log, cluster: Cluster, count: int) -> None:
    messages = [
        (codec.subject_of(event), body) for event, body in zip(cluster.log, bodies(cluster.log), strict=True)
    ]
    ends, fence = itertools.cycle(messages), 0
    subject = subjects.decision(OWNER)
    for first in range(0, count, BATCH + 1):
        drafts = [Draft(subject, b"{}", f"lead-{first}")]
        drafts += [Draft(*message, f"{first}-{n}") for n, message in enumerate(itertools.islice(ends, BATCH))]
        fence = await append_until_stored(stream, drafts, Fence(subject, fence)) - BATCH
    await append_until_stored(stream, [Draft(subject, b"{}", "last")], Fence(subject, fence))


async def _read(log: Log, count: int) -> float:
    began, events_read = time.perf_counter(), 0
    async with log.read(CONTROL, after=0) as feed:
        while events_read < count:
            events_read += len((await feed.batch()).messages)
    return events_read / (time.perf_counter() - began)


async def _rebuilt(log: Log, count: int) -> float:
    """Events per second from the archive to the searcher's state."""
    state, folded = SEARCHER.state(), 0
    began = time.perf_counter()
    async with log.read(CONTROL, after=0) as feed:
        while folded < count:
            for message in (await feed.batch()).messages:
                if message.subject != subjects.decision(OWNER) and folded < count:
                    for _ in SEARCHER.evolve(state, read_event(message)):
                        pass
                    folded += 1
    return folded / (time.perf_counter() - began)


async def _story(log: Log) -> float:
    """Milliseconds to read everything about one trial, given the indexes."""
    for _ in range(2):
        began = time.perf_counter()
        async with log.read(CONTROL, after=0, subjects=[subjects.decisions_about_trial(3)]) as feed:
            while not (await feed.batch()).caught_up:
                pass
    return (time.perf_counter() - began) * 1000


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(events=3_000, segment=1_000, trials=4, idle_s=0.2, made=300),
    positional=("events",),
)

if __name__ == "__main__":
    BENCHMARK.run()

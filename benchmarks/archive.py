"""How fast the log moves to the archive and is read from there, and how long the stream pauses for it.

python -m benchmarks.archive [--quick] [EVENTS]
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import tempfile
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from benchmarks.fold_rate import fold
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.histories import Cluster, bodies
from benchmarks.kit.live import Broker, connected, running_broker
from benchmarks.kit.table import row
from det_contracts import codec, subjects
from services.archive.cutting import Cutter, Limits
from services.archive.sealing import Sealer
from services.kit.archive.log import ArchivedLog
from services.kit.archive.segments import Segments
from services.kit.blobs import DirectoryBlobs
from services.kit.cancellation import cancel_and_wait
from services.kit.log import Draft, Fence, Log
from services.kit.log_jetstream import JetStreamLog
from services.kit.records import read_event
from services.searcher.app import RULES as SEARCHER

CONTROL = subjects.CONTROL
OWNER = "bench"
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
    with _quiet(), running_broker() as server, tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measured(server, Segments(DirectoryBlobs(Path(folder))), cluster, size))
        files = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    row("an event in the archive", files / size.events, "bytes")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses log lines about sealing, which would break up the table."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.configure(**before)


async def _measured(server: Broker, segments: Segments, cluster: Cluster, size: Size) -> None:
    async with connected(server) as connection, connected(server) as other:
        stream = JetStreamLog(connection)
        await _fill(stream, cluster, size.events)
        sealer = Sealer(stream, segments, count=size.segment)
        began = time.perf_counter()
        sealed = 0
        while (header := await sealer.seal()) is not None:
            sealed = header.last
        row("sealed, and read back", sealed / (time.perf_counter() - began), "events/s")
        cutter = Cutter(
            stream, sealer, segments, Limits(keep_s=0, keep_events=0), owners=(OWNER,), clock=lambda: 1e12
        )
        idle, _ = await _appending(JetStreamLog(other), asyncio.sleep(size.idle_s), "idle")
        cutting = cutter.cut({OWNER: 10**12})
        longest, typical = await _appending(JetStreamLog(other), cutting, "cutting")
        row("an append while the stream is cut, p50", typical * 1000, "ms")
        ratio = f"{idle * 1000:.3g} ms while it is not"
        row("an append while the stream is cut, longest", longest * 1000, "ms", "< 100", ratio)
        log = ArchivedLog(JetStreamLog(other), segments)
        row("read from the archive", await _read(log, sealed), "events/s", ">= 200,000")
        row("a story of one trial", await _story(log), "ms", "< 200")
        rate = await _rebuilt(log, len(cluster.log))
        from_memory = fold(SEARCHER, bodies(cluster.log))
        ratio = f"{rate / from_memory:.2f} of folding alone"
        row("read from the archive and folded by the searcher", rate, "events/s", ">= 200,000", ratio)


async def _fill(stream: Log, cluster: Cluster, count: int) -> None:
    messages = [
        (codec.subject_of(event), body) for event, body in zip(cluster.log, bodies(cluster.log), strict=True)
    ]
    ends, fence = itertools.cycle(messages), 0
    subject = subjects.decision(OWNER)
    for first in range(0, count, BATCH + 1):
        drafts = [Draft(subject, b"{}", f"lead-{first}")]
        drafts += [Draft(*message, f"{first}-{n}") for n, message in enumerate(itertools.islice(ends, BATCH))]
        fence = await stream.append_batch(drafts, fence=Fence(subject, fence)) - BATCH
    await stream.append_batch([Draft(subject, b"{}", "last")], fence=Fence(subject, fence))


async def _appending(log: Log, work: Awaitable[object], name: str) -> tuple[float, float]:
    """The maximum and the median time of an append while some work is done."""
    took: list[float] = []

    async def append() -> None:
        for number in itertools.count():
            began = time.perf_counter()
            await log.append(Draft("control.bench.thing.1.happened", b"{}", f"{name}-{number}"))
            took.append(time.perf_counter() - began)

    appending = asyncio.ensure_future(append())
    await work
    await cancel_and_wait(appending)
    return max(took), sorted(took)[len(took) // 2]


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

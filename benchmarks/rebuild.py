"""What it costs to rebuild a service's deleted database from the archive, in processor time per event.

python -m benchmarks.rebuild [--quick] [EVENTS]
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.aged import in_own_process
from benchmarks.kit.aged_cluster import SERVICES
from benchmarks.kit.ages import Cycle, Shift, message, recorded
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.quiet import quiet
from benchmarks.kit.table import row
from det_contracts import subjects
from det_contracts.envelope import PassedOver
from services.archive.sealing import Sealer
from services.kit.archive.log import ArchivedLog
from services.kit.archive.segments import Segments
from services.kit.blobs import DirectoryBlobs
from services.kit.cancellation import cancel_and_wait
from services.kit.log import Log, Stored
from services.kit.log_memory import MemoryLog
from services.kit.migrate import open_database
from services.kit.runner import Runner
from services.kit.service import Service

CONTROL = subjects.CONTROL
BEGAN_AT = 1.7e9
PATIENCE_S = 3600.0


@dataclass(frozen=True)
class Size:
    events: int = 500_000
    """At least so many, in whole cycles."""
    segment: int = 100_000
    experiments: int = 20
    """Of a cycle, which is lived again and again."""
    each: int = 100
    """Trials of an experiment."""


class Spent(NamedTuple):
    """Seconds of a processor."""

    folding: float
    """For reading, decoding and evolving alone."""
    rebuilding: float
    """Until the whole database is there."""


def main(size: Size) -> None:
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as name, quiet():
        stream, count = asyncio.run(sealed(size, Path(name)))
        spent = {owner: in_own_process(measured, owner, stream, name) for owner in SERVICES}
    for owner, (folding, rebuilding) in spent.items():
        alone = f"{count / folding:,.0f} read, decoded and folded alone"
        title = f"{owner}: {count:,} events to a new database, of a processor"
        row(title, count / rebuilding, "events/s", ">= 200,000", alone)


async def sealed(size: Size, folder: Path) -> tuple[MemoryLog, int]:
    """Archive a history, and return what is left of the stream, and how many events there were."""
    stream, segments = MemoryLog(), Segments(DirectoryBlobs(folder / "archive"))
    messages = list(history(size))
    stream.streams[CONTROL] += [Stored(subject, at, body) for at, (subject, body) in enumerate(messages, 1)]
    sealer, through = Sealer(stream, segments, count=min(size.segment, len(messages))), 0
    while (header := await sealer.seal()) is not None:
        through = header.last
    await stream.forget(CONTROL, through)
    stream.streams[CONTROL][:through] = [Stored("", 0, b"")] * through
    return stream, len(messages)


def history(size: Size) -> Iterator[tuple[str, bytes]]:
    """Subjects and bodies of CONTROL, cycle after cycle."""
    cycle, first = Cycle(size.experiments, size.each), Shift(0, 0, BEGAN_AT)
    each = sum(record.stream == CONTROL for record in recorded(cycle.events, first))
    for number in range(-(-size.events // each)):
        for place, record in enumerate(recorded(cycle.events, cycle.later(first, number))):
            if record.stream == CONTROL:
                yield message(record, f"{number}-{place}")


def measured(owner: str, stream: MemoryLog, folder: str) -> Spent:
    """Rebuild one service's database in a process that does nothing else."""
    # As the fork server does, from which services are started.
    gc.freeze()
    service: Service = importlib.import_module(f"services.{owner}.app").SERVICE
    log = ArchivedLog(stream, Segments(DirectoryBlobs(Path(folder, "archive"))))
    end = len(stream.streams[CONTROL])
    began = time.process_time()
    asyncio.run(folded(service, log, end))
    halfway = time.process_time()
    asyncio.run(rebuilt(service, log, end, f"sqlite:///{folder}/{owner}.db"))
    return Spent(halfway - began, time.process_time() - halfway)


async def folded(service: Service, log: Log, end: int) -> None:
    """Bring the whole history into a state in memory, and nothing more."""
    evolve, state, position = service.rules.evolve, service.rules.state(), 0
    read = service.rules.reader(CONTROL, frozenset(), lambda: state)
    async with log.read(CONTROL, after=0) as feed:
        while position < end:
            for stored in (await feed.batch()).messages:
                position = stored.position
                recorded = read(stored, CONTROL)
                if not isinstance(recorded, PassedOver):
                    for _ in evolve(state, recorded):
                        pass


async def rebuilt(service: Service, log: Log, end: int, url: str) -> None:
    """Start a service with an empty database, and wait until everything is in it."""
    rules: Any = service.rules
    database = open_database(url, rules.owner, service.folder)
    saver = service.saver(database)
    runner: Runner[Any] = Runner(rules, log, saver)
    running = asyncio.ensure_future(runner.run())
    await asyncio.wait(
        {running, ready := asyncio.ensure_future(runner.ready.wait())}, return_when="FIRST_COMPLETED"
    )
    ready.cancel()
    await saver.wait_for_position(end, within_s=600)
    await cancel_and_wait(running)
    database.close()


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(events=300, segment=100, experiments=1, each=4),
    positional=("events",),
)

if __name__ == "__main__":
    BENCHMARK.run()

"""Latency from an append to CONTROL, or a fact in WITNESS, until it is read, and folded by every service.

Measured on an idle local cluster; the additional time of facts is their way through the intake.

python -m benchmarks.control_latency [--quick] [TIMES]
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field

import nats

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import broker_url, running_cluster
from benchmarks.kit.table import percentile, row
from det_contracts import codec, queries, subjects
from det_contracts.events import trial
from services.kit.bus import BusClient
from services.kit.log import Draft, Feed
from services.kit.log_jetstream import JetStreamLog

QUESTIONS = (
    queries.SearchProgress([]),
    queries.Waiting(),
    queries.TrialSummaries([]),
    queries.Checkpoints(uuids=["none"]),
)


TRIAL = 999_999
SUBJECTS = {subjects.CONTROL: f"control.trial.{TRIAL}.status_set", subjects.WITNESS: f"witness.trial.{TRIAL}"}


@dataclass
class Took:
    """Seconds of each append alone, until a reader of CONTROL has it, and until all four services have it."""

    appends: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    wholes: list[float] = field(default_factory=list)


async def measure(url: str, credentials: str, times: int) -> dict[str, Took]:
    """Latency by way of each of the two streams."""
    client = await nats.connect(url, user_credentials=credentials)
    journal, bus_client = JetStreamLog(client), BusClient(client)
    took = {stream: Took() for stream in SUBJECTS}
    _, end = await journal.bounds(subjects.CONTROL)
    async with journal.read(subjects.CONTROL, after=end, subjects=[SUBJECTS[subjects.CONTROL]]) as feed:
        for _ in range(times):
            for stream, latencies in took.items():
                await _once(stream, latencies, journal, bus_client, feed)
    await client.close()
    return took


async def _once(stream: str, took: Took, journal: JetStreamLog, bus_client: BusClient, feed: Feed) -> None:
    event, id = trial.StatusSet(TRIAL, 1, "benchmark"), uuid.uuid4().hex
    body = codec.encode(event, id=id, actor="benchmark", at=time.time())
    began = time.perf_counter()
    position = await journal.append(Draft(SUBJECTS[stream], body, id))
    took.appends.append(time.perf_counter() - began)
    while not (await feed.batch()).messages:
        pass
    took.reads.append(time.perf_counter() - began)
    questions = (bus_client.query(question, min_position=position, stream=stream) for question in QUESTIONS)
    await asyncio.gather(*questions)
    took.wholes.append(time.perf_counter() - began)
    await asyncio.sleep(0.005)


@dataclass(frozen=True)
class Size:
    times: int = 200


def main(size: Size) -> None:
    with running_cluster(slots=1) as home:
        took = asyncio.run(measure(*broker_url(home), size.times))
    _tell("append to CONTROL", "append", took[subjects.CONTROL], "")
    _tell("fact stated to WITNESS", "fact", took[subjects.WITNESS], "< 2")


def _tell(what: str, short: str, took: Took, read_goal: str) -> None:
    alone, read, whole = (percentile(times, 0.5) * 1e3 for times in (took.appends, took.reads, took.wholes))
    row(f"{what}, acknowledged, p50", alone, "ms")
    row(f"{short} -> read from CONTROL, p50", read, "ms", read_goal, f"{read / alone:.1f} x {short}")
    ratio = f"{whole / alone:.1f} x {short}"
    row(f"{short} -> folded by every service and asked for, p50", whole, "ms", "< 5", ratio)


BENCHMARK = Benchmark(main, Size(), quick=Size(times=3), positional=("times",))

if __name__ == "__main__":
    BENCHMARK.run()

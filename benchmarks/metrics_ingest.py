"""Reports from real SDK processes through JetStream into the metrics service, on SQLite and PostgreSQL.

python -m benchmarks.metrics_ingest [--quick]
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nats
import sqlalchemy as sa

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.live import Broker, make_streams, running_broker
from benchmarks.kit.processes import start_module
from benchmarks.kit.reporter import train_context
from benchmarks.kit.reports import publish_round
from benchmarks.kit.table import median, percentile, row
from det_contracts.problems import Refused
from det_contracts.queries import Buckets, TrialSummaries
from services.kit.bus import BusClient

AT_ONCE = 10_000
"""Rows of one raw insert."""


@dataclass(frozen=True)
class Size:
    reports: int = 100_000
    """Reports of a single reporter."""
    reporters: int = 8
    reports_each: int = 15_000
    single_reporters: int = 4
    singles_each: int = 40_000
    looks: int = 100
    together: int = 1_000
    """Trials that report at the same time."""
    rounds: int = 12
    """Number of reports from each of them."""
    raw_points: int = 200_000
    raw_rounds: int = 3


@contextlib.contextmanager
def metrics_service(server: Broker, database: str) -> Iterator[subprocess.Popen[bytes]]:
    """The service alone, as a process."""
    environment = os.environ | {"STEADFAST_NATS_URL": server.url, "STEADFAST_DATABASE_URL": database}
    environment["STEADFAST_LOG_LEVEL"] = "ERROR"
    process = start_module("services.metrics", env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def stored(bus_client: BusClient, trials: list[int]) -> dict[int, int]:
    """How many reports of each trial are in the tables."""
    try:
        summaries = (await bus_client.query(TrialSummaries(trials))).value
    except Refused:
        return {}
    return {int(id): summary["summary"]["training"]["m0"]["count"] for id, summary in summaries.items()}


async def until_stored(url: str, trials: list[int], reports: int) -> None:
    """Return once all of it can be read."""
    client = await nats.connect(url)
    bus_client = BusClient(client)
    while await stored(bus_client, trials) != dict.fromkeys(trials, reports):
        await asyncio.sleep(0.05)
    await client.close()


class Reporters:
    """Processes that report as fast as they can."""

    _next = 1

    def __init__(self, url: str, count: int, reports: int, names: int) -> None:
        self.trials = list(range(Reporters._next, Reporters._next + count))
        Reporters._next += count
        self.points = count * reports * names
        self._reports = reports
        self._url = url
        pipe = subprocess.PIPE
        self._processes = [
            start_module(
                "benchmarks.kit.reporter", url, id, reports, names, stdin=pipe, stdout=pipe, text=True
            )
            for id in self.trials
        ]

    def rate(self) -> float:
        """Points per second, from the first report until the last can be read."""
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        began = time.perf_counter()
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        asyncio.run(until_stored(self._url, self.trials, self._reports))
        took = time.perf_counter() - began
        for process in self._processes:
            process.communicate()
        return self.points / took


def raw_rate(database: str, points: int) -> float:
    """The same points as one row each, with the index that a chart needs, in large batches."""
    engine = sa.create_engine(database.replace("postgresql://", "postgresql+psycopg://", 1))
    table = sa.Table(
        "raw",
        sa.MetaData(),
        *(sa.Column(name, sa.BigInteger) for name in ("trial", "step")),
        sa.Column("name", sa.String),
        *(sa.Column(name, sa.Float) for name in ("value", "at")),
        sa.Index("raw_by_name", "trial", "name", "step"),
    )
    with engine.begin() as connection:
        table.drop(connection, checkfirst=True)
        table.create(connection)
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    began = time.perf_counter()
    for start in range(0, points, AT_ONCE):
        rows = [
            {
                "trial": 1,
                "step": (start + n) // 10,
                "name": f"m{n % 10}",
                "value": 1.0 / (n + 1),
                "at": 1e9 + n,
            }
            for n in range(min(AT_ONCE, points - start))
        ]
        with engine.begin() as connection:
            connection.execute(sa.insert(table), rows)
    took = time.perf_counter() - began
    engine.dispose()
    return points / took


def visible(url: str, times: int) -> list[float]:
    """Seconds from a report until a query returns it."""
    trial = 900_000
    train, transport = train_context(url, trial)

    async def look() -> list[float]:
        client = await nats.connect(url)
        bus_client, took = BusClient(client), []
        for step in range(1, times + 1):
            began = time.perf_counter()
            train.report_training_metrics(step, {"m0": 1.0 / step})
            query = Buckets(trial_ids=[trial], names=["m0"], first=step, last=step)
            while not (await bus_client.query(query)).value:
                await asyncio.sleep(0.002)
            took.append(time.perf_counter() - began)
        await client.close()
        return took

    took = asyncio.run(look())
    transport.close()
    return took


async def together(url: str, trials: list[int], rounds: int) -> None:
    """Very many trials report twenty metrics each, all at the same time, repeatedly."""
    client = await nats.connect(url)
    stream = client.jetstream(publish_async_max_pending=1000)
    for number in range(1, rounds + 1):
        steps = list(range(10 * number, 10 * number + 10))
        columns = {f"m{name}": [float(step) for step in steps] for name in range(20)}
        await publish_round(stream, trials, number, steps, columns)
    await stream.publish_async_completed()
    await client.close()


def memory_mib(process: subprocess.Popen[bytes]) -> float:
    """Peak resident memory of a process."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(server: Broker, kind: str, database: str, size: Size) -> None:
    trials = list(range(1_000_000, 1_000_000 + size.together))
    with metrics_service(server, database) as process:
        one_reporter = Reporters(server.url, 1, size.reports, 10)
        rates = {"1 reporter, 10 metrics a report": one_reporter.rate()}
        some = Reporters(server.url, size.reporters, size.reports_each, 10)
        rates[f"{size.reporters} reporters, 10 metrics a report"] = some.rate()
        single = Reporters(server.url, size.single_reporters, size.singles_each, 1).rate()
        latency = visible(server.url, size.looks)
        began = time.perf_counter()
        asyncio.run(together(server.url, trials, size.rounds))
        asyncio.run(until_stored(server.url, trials, 10 * size.rounds))
        took = time.perf_counter() - began
        peak = memory_mib(process)
    raw = median([raw_rate(database, size.raw_points) for _ in range(size.raw_rounds)])
    for measure, rate in rates.items():
        aim = ">= 200,000, >= 0.5 x"
        row(f"{kind}: stored, {measure}", rate, "points/s", aim, f"{rate / raw:.2f} x raw batched inserts")
    alone = f"single-point reports, {size.single_reporters} reporters"
    row(f"{kind}: stored, {alone}", single, "reports/s", ">= 20,000")
    row(f"{kind}: report -> answered by a query, p50", percentile(latency, 0.5) * 1e3, "ms", "< 100")
    row(f"{kind}: report -> answered by a query, p99", percentile(latency, 0.99) * 1e3, "ms", "< 500")
    points = size.together * 10 * size.rounds * 20
    row(f"{kind}: stored, {size.together:,} trials at once, 20 metrics", points / took, "points/s")
    row(f"{kind}: peak memory of the service, those trials included", peak, "MiB", "< 300")


def main(size: Size) -> None:
    from pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        database = get_server(Path(folder) / "postgres", cleanup_mode="stop")
        for kind, url in (("SQLite", f"sqlite:///{folder}/metrics.db"), ("PostgreSQL", database.get_uri())):
            with running_broker() as server:
                asyncio.run(make_streams(server))
                measure(server, kind, url, size)
        database.cleanup()


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(
        reports=20,
        reporters=1,
        reports_each=20,
        single_reporters=1,
        singles_each=20,
        looks=2,
        together=3,
        rounds=2,
        raw_points=100,
        raw_rounds=1,
    ),
    needs=("pgserver",),
)

if __name__ == "__main__":
    BENCHMARK.run()

"""A local cluster with a long history: some of it told through the log, the rest grown in its databases."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import shutil
import sqlite3
import time
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nats

from benchmarks.kit import grown_tables
from benchmarks.kit.ages import Cycle, Shift, message, recorded
from benchmarks.kit.cluster import broker_url
from det_contracts import subjects
from det_contracts.envelope import Recorded
from services.kit import broker
from services.local.control import down, start_program, stop_program, up
from services.local.home import Home, Plan

SERVICES = ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")
"""Those with a database."""
ALL = ("intake", *SERVICES)
LOGGED_CYCLES = 3
"""Cycles that go through the log; the others are grown."""
PATIENCE_S = 300.0
AT_ONCE = 1000


class AgedCluster:
    """A cluster whose age can be chosen; each age begins as a copy of the same young one."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._young = folder / "young"
        self._readings: list[dict[str, grown_tables.Reading]] = []
        self.home = Home("aged", folder / "home")
        self.plan = Plan(name="aged", port=port, gpu=False, slots=1, ends_with=os.getpid())

    def up(self) -> None:
        """Start it."""
        up(self.plan, self.home)

    def down(self) -> None:
        """Stop it."""
        down(self.home)

    def tell(self, live: Iterable[Recorded], cycle: Cycle, first: Shift) -> None:
        """Have the running cluster fold what lives and the first cycles; then it is kept, and stopped."""
        for number in range(LOGGED_CYCLES):
            events = recorded(cycle.events, cycle.later(first, number))
            self._fold([*live, *events] if not number else events)
            self._readings.append({name: grown_tables.read(self.database(name)) for name in SERVICES})
        self.down()
        shutil.copytree(self.home.path, self._young)

    def _fold(self, events: Iterable[Recorded]) -> None:
        for name in ALL:
            stop_program(self.home, name)
        ends = asyncio.run(_append(*broker_url(self.home), events))
        for name in ALL:
            start_program(self.home, name)
        for name in ALL:
            self.wait(name)
        for name in SERVICES:
            _until_saved(self.database(name), ends)

    def grow(self, cycles: int) -> None:
        """Stand where so many cycles have been lived; it does not run."""
        shutil.rmtree(self.home.path, ignore_errors=True)
        shutil.copytree(self._young, self.home.path)
        first, second, _third = self._readings
        largest_first = sorted(SERVICES, key=lambda name: -self.database(name).stat().st_size)
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            work = [
                pool.submit(
                    grown_tables.grow, self.database(name), first[name], second[name], cycles - LOGGED_CYCLES
                )
                for name in largest_first
            ]
        for future in work:
            future.result()

    def database(self, name: str) -> Path:
        """The file of a service."""
        return self.home.path / "databases" / f"{name}.db"

    def restarted(self, name: str) -> float:
        """Seconds until a service is ready that was stopped before."""
        stop_program(self.home, name)
        began = time.perf_counter()
        start_program(self.home, name)
        self.wait(name)
        return time.perf_counter() - began

    def wait(self, name: str) -> None:
        """Wait until a service says that it is ready."""
        port = (self.home.read("ports.json") or {})[name]
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5),
            ):
                return
            time.sleep(0.02)
        raise TimeoutError(f"{name} is not ready after {PATIENCE_S:.0f} s: see {self.home.path / 'logs'}")

    def rss_mib(self, name: str) -> float:
        """What a service holds of the memory."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            # A service may be ready before the supervisor has noted its new process.
            pid = (self.home.read("processes.json") or {})[name]
            with contextlib.suppress(OSError, IndexError):
                return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024
            time.sleep(0.02)
        raise TimeoutError(f"no process of {name} is noted after {PATIENCE_S:.0f} s")


@contextlib.contextmanager
def aged_cluster(folder: Path) -> Iterator[AgedCluster]:
    """A young one that runs, stopped at the end of a `with`."""
    with broker.held_port() as door:
        cluster = AgedCluster(folder, broker.port_of(door))
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()


async def _append(url: str, credentials: str, events: Iterable[Recorded]) -> dict[str, int]:
    """Put events into their streams; returns where these end."""
    client = await nats.connect(url, user_credentials=credentials)
    stream = client.jetstream(publish_async_max_pending=AT_ONCE)
    for number, record in enumerate(events):
        await stream.publish_async(*message(record, f"aged-{number}"))
    await stream.publish_async_completed()
    ends = {
        name: (await stream.stream_info(name)).state.last_seq for name in (subjects.CONTROL, subjects.REPORTS)
    }
    await client.close()
    return ends


def _until_saved(file: Path, ends: dict[str, int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            positions = dict(connection.execute("SELECT stream, position FROM positions").fetchall())
        if positions and all(at >= ends.get(stream, 0) for stream, at in positions.items()):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{file} does not follow the log to {ends}")

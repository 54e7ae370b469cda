"""How long other requests wait while many clients follow the log of one trial.

python -m benchmarks.followers [--quick] [FOLLOWERS]
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import nats

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, broker_url, running_cluster
from benchmarks.kit.table import percentile, row
from benchmarks.log_page import DET, ask, log_in, wait
from det_contracts import subjects
from det_contracts.reports import LogBatch, LogLine
from services.gateway.http.server import raise_connection_limit
from services.local.home import Home

CONFIG = """
name: followed
entrypoint: sleep 3600
searcher: {name: single, metric: x, max_length: 1}
"""
LINES = 5


@dataclass(frozen=True)
class Size:
    followers: int = 1900
    batches: int = 50


def main(size: Size) -> None:
    raise_connection_limit()
    with running_cluster(slots=1) as home, httpx.Client(base_url=address(home), timeout=120) as client:
        log_in(client)
        experiment, trial, task = trial_of(home, client)
        asyncio.run(measure(home, client, size, trial, task))
        client.post(f"/api/v1/experiments/{experiment}/kill")


def trial_of(home: Home, client: httpx.Client) -> tuple[int, int, str]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.yaml").write_text(CONFIG)
        words = [str(DET), "-m", address(home), "e", "create", "config.yaml", "."]
        environment = os.environ | {"HOME": folder}
        done = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, env=environment)
    experiment = int(done.stdout.split(b"Created experiment ")[1].split()[0])
    path = f"experiments/{experiment}/trials"
    wait(lambda: any(trial["state"] == "STATE_RUNNING" for trial in ask(client, path)["trials"]))
    (trial,) = ask(client, path)["trials"]
    return experiment, trial["id"], trial["taskIds"][0]


async def measure(home: Home, client: httpx.Client, size: Size, trial: int, task: str) -> None:
    host, port = address(home).removeprefix("http://").split(":")
    token = client.headers["Authorization"]
    head = f"GET /api/v1/trials/{trial}/logs?follow=true HTTP/1.1\r\nHost: localhost"
    request = f"{head}\r\nAuthorization: {token}\r\n\r\n"
    streams = []
    began = time.perf_counter()
    for start in range(0, size.followers, 50):
        some = range(start, min(start + 50, size.followers))
        streams += await asyncio.gather(*(opened(host, int(port), request) for _ in some))
    follow = f"{size.followers:,} followers"
    row(f"{follow} connected", (time.perf_counter() - began) * 1000 / size.followers, "ms each")
    taken = [asyncio.create_task(drained(reader)) for reader, _ in streams]
    waits = [await waited(home, token) for _ in range(20)]
    row(f"an answer to somebody else, {follow}, nothing written, longest", max(waits), "ms")
    others = asyncio.create_task(waiting(home, token))
    await write(home, task, size.batches)
    others.cancel()
    waits = await others
    row(f"an answer to somebody else, {follow}, lines written, p50", percentile(waits, 0.5), "ms")
    row(f"an answer to somebody else, {follow}, lines written, longest", max(waits), "ms", "< 500")
    for task_ in taken:
        task_.cancel()
    for _, writer in streams:
        writer.transport.abort()


async def opened(host: str, port: int, request: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request.encode())
    assert b" 200 " in await reader.readline()
    return reader, writer


async def drained(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


async def waited(home: Home, token: str) -> float:
    async with httpx.AsyncClient(base_url=address(home), timeout=120, trust_env=False) as client:
        began = time.perf_counter()
        (await client.get("/api/v1/me", headers={"Authorization": token})).raise_for_status()
        return (time.perf_counter() - began) * 1000


async def waiting(home: Home, token: str) -> list[float]:
    """Ask again and again until cancelled."""
    waits: list[float] = []
    try:
        while True:
            waits.append(await waited(home, token))
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        return waits


async def write(home: Home, task: str, batches: int) -> None:
    """Publish like a worker, twenty batches a second."""
    url, credentials = broker_url(home)
    client: Any = await nats.connect(url, user_credentials=credentials)
    for number in range(batches):
        lines = [LogLine(time.time(), "stdout", "INFO", None, f"line {number}-{n}") for n in range(LINES)]
        batch = LogBatch(
            task_id=task, allocation_id=f"{task}.1", worker_id="w", source="b", offset=number, lines=lines
        )
        await client.request(subjects.logs(task), msgspec.json.encode(batch))
        await asyncio.sleep(0.05)
    await client.close()


BENCHMARK = Benchmark(main, Size(), quick=Size(followers=20, batches=3), positional=("followers",))

if __name__ == "__main__":
    BENCHMARK.run()

"""A log of millions of lines through the whole cluster: from workers' batches to the page in a browser.

python -m benchmarks.log_page [--quick] [LINES]
"""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import nats

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.browser import signed_in
from benchmarks.kit.cluster import address, broker_url, running_cluster
from benchmarks.kit.table import median, percentile, row
from benchmarks.logs import NEEDLE, batches
from det_contracts import subjects
from det_contracts.reports import LogBatch, log_id
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog
from services.local.home import Home

if TYPE_CHECKING:
    from playwright.sync_api import Page

DET = Path(sys.executable).parent / "det"
CONFIG = """
name: talks
entrypoint: echo first line
searcher: {name: single, metric: x, max_length: 1}
"""
AT_ONCE = 64
SHOWN = "document.querySelectorAll('.log .line').length > 50"
NEAR = """place => [...document.querySelectorAll('.log .line')].some(
    line => Math.abs(Number(/step (\\d+) /.exec(line.textContent)?.[1]) - place) < 50)"""


@dataclass(frozen=True)
class Size:
    lines: int = 10_000_000
    rounds: int = 15


def main(size: Size) -> None:
    with running_cluster(slots=1) as home, httpx.Client(base_url=address(home), timeout=120) as client:
        log_in(client)
        experiment, trial, task = trial_of(home, client)
        began = time.perf_counter()
        asyncio.run(publish(home, task, size.lines))
        peak = Peak(home)
        wait(lambda: ask(client, f"trials/{trial}/logs/summary")["lines"] >= size.lines)
        took = time.perf_counter() - began
        measure = f"{size.lines:,} lines made, published, folded and readable"
        row(measure, size.lines / took, "lines/s")
        row("largest memory of the metrics service meanwhile", peak.stop() / 1e6, "MB", "< 300 MB")
        http(client, f"trials/{trial}/logs", size.rounds)
        browse(home, f"experiments/{experiment}/trials/{trial}/logs", size)


def log_in(client: httpx.Client) -> None:
    answer = client.post("/api/v1/auth/login", json={"username": "determined", "password": ""})
    client.headers["Authorization"] = f"Bearer {answer.json()['token']}"


def ask(client: httpx.Client, path: str, **params: Any) -> Any:
    answer = client.get(f"/api/v1/{path}", params=params)
    answer.raise_for_status()
    return answer.json()


def wait(true: Callable[[], Any], every_s: float = 0.2) -> None:
    while not true():
        time.sleep(every_s)


def trial_of(home: Home, client: httpx.Client) -> tuple[int, int, str]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.yaml").write_text(CONFIG)
        words = [str(DET), "-m", address(home), "e", "create", "config.yaml", "."]
        environment = os.environ | {"HOME": folder}
        done = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, env=environment)
    experiment = int(done.stdout.split(b"Created experiment ")[1].split()[0])
    path = f"experiments/{experiment}/trials"
    wait(lambda: ask(client, path)["trials"])
    (trial,) = ask(client, path)["trials"]
    return experiment, trial["id"], trial["taskIds"][0]


async def publish(home: Home, task: str, lines: int) -> None:
    """Publish like a worker, but many batches at once."""
    url, credentials = broker_url(home)
    client = await nats.connect(url, user_credentials=credentials)
    journal, free = JetStreamLog(client), asyncio.Semaphore(AT_ONCE)
    sent: set[asyncio.Task[Any]] = set()

    async def send(draft: Draft) -> None:
        try:
            await journal.append(draft)
        finally:
            free.release()

    for body in batches(lines):
        batch = msgspec.json.decode(body, type=LogBatch)
        batch = msgspec.structs.replace(batch, task_id=task, allocation_id=f"{task}.9", source="many")
        id = log_id(batch.allocation_id, "w", "many", batch.offset)
        await free.acquire()
        sending = asyncio.create_task(send(Draft(subjects.logs(task), msgspec.json.encode(batch), id)))
        sent.add(sending)
        sending.add_done_callback(sent.discard)
    await asyncio.gather(*sent)
    await client.close()


class Peak:
    """Peak memory of the metrics service, sampled ten times a second."""

    def __init__(self, home: Home) -> None:
        self._pid = (home.read("processes.json") or {})["metrics"]
        self._most, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while True:
            resident = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1]) * page
            self._most = max(self._most, resident)
            if self._over.wait(0.1):
                return

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most


def http(client: httpx.Client, path: str, rounds: int) -> None:
    for measure, params, aim in (
        ("first page", {}, "< 200 ms"),
        ("last page", {"orderBy": "ORDER_BY_DESC"}, "< 200 ms"),
        ("filtered page", {"levels": "LOG_LEVEL_ERROR", "rankIds": 3}, "< 300 ms"),
        ("text in one line of all", {"searchText": NEEDLE}, "< 1 s"),
        ("frequent text", {"searchText": "checkpoint"}, "< 1 s"),
    ):
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            ask(client, f"{path}/page", **params)
            times.append((time.perf_counter() - began) * 1000)
        row(f"{measure}, by HTTP", median(times), "ms", aim, f"p95 {percentile(times, 0.95):,.0f} ms")


def browse(home: Home, path: str, size: Size) -> None:
    with signed_in(address(home)) as page:
        opened, jumped = [], []
        for turn in range(size.rounds):
            began = time.perf_counter()
            page.goto(f"/det/{path}?n={turn}")
            # The page's security policy forbids waiting inside of it.
            wait(lambda: page.evaluate(SHOWN), 0.005)
            opened.append((time.perf_counter() - began) * 1000)
            place, *point = on_strip(page, turn / size.rounds)
            began = time.perf_counter()
            page.mouse.click(*point)
            wait(partial(page.evaluate, NEAR, place), 0.005)
            jumped.append((time.perf_counter() - began) * 1000)
        for measure, times in (("page opened", opened), ("moved to any other place", jumped)):
            row(
                f"{measure}, lines painted", median(times), "ms", "", f"p95 {percentile(times, 0.95):,.0f} ms"
            )


def on_strip(page: Page, share: float) -> tuple[int, float, float]:
    """The line that a click on the strip beside the log leads to, and where to click, in pixels."""
    strip = page.get_by_label("Place in the log")
    box = strip.bounding_box()
    assert box
    first, last = (int(strip.get_attribute(f"aria-value{end}") or 0) for end in ("min", "max"))
    # A click has integer coordinates.
    y = math.ceil(box["y"] + share * (box["height"] - 1))
    place = first + (y - box["y"]) / box["height"] * (last - first)
    return round(place), box["x"] + box["width"] / 2, y


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(lines=3000, rounds=2),
    positional=("lines",),
    needs=("playwright", "chromium", "web UI"),
)

if __name__ == "__main__":
    BENCHMARK.run()

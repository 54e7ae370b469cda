"""Charts of a million points over HTTP, from a local cluster that a real script reported to.

python -m benchmarks.series_query
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page

from benchmarks.browser import CHROMIUM, signed_in
from benchmarks.cluster import address
from benchmarks.table import head, median, percentile, row
from determined.experimental import client
from services.kit import broker
from services.local.control import down, up
from services.local.home import Home, Plan

POINTS = 1_000_000
SERIES = 50
SCRIPT = """
import math, determined as det
from determined import core
with core.init() as context:
    if det.get_cluster_info().trial.hparams["number"] == 0:
        for step in range(1, {points} + 1):
            spike = 1000.0 if step == {points} * 2 // 3 else 0.0
            loss = math.exp(-step / 3e5) + math.sin(step) / 50 + spike
            context.train.report_training_metrics(step, {{"loss": loss}})
    for op in context.searcher.operations():
        context.train.report_validation_metrics(1, {{"loss": 1.0}})
        op.report_completed(1.0)
"""
CONFIG = {
    "name": "a million points",
    "entrypoint": "python script.py",
    "resources": {"slots_per_trial": 0},
    "hyperparameters": {"number": {"type": "int", "minval": 0, "maxval": SERIES - 1, "count": SERIES}},
    "searcher": {"name": "grid", "metric": "loss", "max_length": {"batches": 1}, "max_concurrent_trials": 4},
}
NOTE_TASKS = """
() => {
  window.tasks = [0];
  const note = (list) => list.getEntries().forEach((one) => tasks.push(one.duration));
  new PerformanceObserver(note).observe({ type: "longtask" });
}
"""
LONGEST = "new Promise((tell) => setTimeout(() => tell(Math.max(...tasks)), 500))"
COPIED = ("strands", "chunks", "columns")


class Api:
    """The gateway, as a browser asks it."""

    def __init__(self, home: Home) -> None:
        self._url = address(home)
        body = json.dumps({"username": "determined", "password": ""}).encode()
        request = urllib.request.Request(f"{self._url}/api/v1/auth/login", body)
        self._token = json.load(urllib.request.urlopen(request))["token"]

    def series(self, **params: Any) -> tuple[float, list[Any]]:
        """Milliseconds of one answer, and what it says."""
        query = urlencode({"names": "loss", "group": "training", "width": 1000} | params, doseq=True)
        request = urllib.request.Request(f"{self._url}/api/v1/series?{query}")
        request.add_header("Authorization", f"Bearer {self._token}")
        began = time.perf_counter()
        body = urllib.request.urlopen(request).read()
        return (time.perf_counter() - began) * 1e3, json.loads(body)["series"]


def report(home: Home) -> list[int]:
    """Have a million points reported by a trial, the first of fifty; returns their ids."""
    client.login(address(home), "determined", "")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "script.py").write_text(SCRIPT.format(points=POINTS))
        experiment = client.create_experiment(CONFIG, folder)
    experiment.wait(interval=0.5)
    return sorted(trial.id for trial in experiment.get_trials())


def copy(home: Home, trials: list[int]) -> int:
    """Give all trials the same points, as if they had reported them; returns the one that did.

    Nothing may run meanwhile.
    """
    (path,) = home.path.rglob("metrics.db")
    database = sqlite3.connect(path)
    ((source, strand),) = database.execute("SELECT trial_id, id FROM strands WHERE kind = 'training'")
    offset = database.execute("SELECT max(id) FROM chunks").fetchone()[0] + 1
    for number, trial in enumerate(sorted(set(trials) - {source}), 1):
        moved = number * offset
        _copy(database, "strands", "id = ?", strand, {"id": f"id + {moved}", "trial_id": str(trial)})
        ids = {"id": f"id + {moved}", "strand_id": f"strand_id + {moved}"}
        _copy(database, "chunks", "strand_id = ?", strand, ids)
        mine = "chunk_id IN (SELECT id FROM chunks WHERE strand_id = ?)"
        _copy(database, "columns", mine, strand, {"chunk_id": f"chunk_id + {moved}"})
    database.commit()
    database.close()
    return int(source)


def _copy(database: sqlite3.Connection, table: str, where: str, key: int, changed: dict[str, str]) -> None:
    names = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changed.get(name, name) for name in names)
    database.execute(f"INSERT INTO {table} SELECT {values} FROM {table} WHERE {where}", (key,))


def bytes_per_point(home: Home) -> float:
    """On disk, chunks and their index alone."""
    (path,) = home.path.rglob("metrics.db")
    database = sqlite3.connect(path)
    database.execute("VACUUM")
    pages = database.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN {(*COPIED, 'chunks_by_strand')}")
    found = float(pages.fetchone()[0]) / POINTS
    database.close()
    return found


def main() -> None:
    head()
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        home = Home("bench", Path(folder))
        plan = Plan(name="bench", port=broker.free_port(), gpu=False, slots=1)
        up(plan, home)
        try:
            trials = report(home)
            down(home)
            row("bytes on disk", bytes_per_point(home), "bytes/point", "<= 12")
            source = copy(home, trials)
            up(plan, home)
            measure(Api(home), source, trials)
            if CHROMIUM:
                browse(home)
        finally:
            down(home)


def measure(api: Api, trial: int, trials: list[int]) -> None:
    cold, (found,) = api.series(trialIds=trial)
    assert found["count"] == POINTS
    assert max(found["max"]) > 999, "the spike is lost"
    row("1,000,000 points to 1,000 buckets, first time", cold, "ms", "< 100")
    warm = [api.series(trialIds=trial)[0] for _ in range(30)]
    row("1,000,000 points to 1,000 buckets, p50", median(warm), "ms", "< 20")
    row("1,000,000 points to 1,000 buckets, p95", percentile(warm, 0.95), "ms", "< 100")
    at = POINTS * 2 // 3
    zoom = [api.series(trialIds=trial, **{"from": at - 5000, "to": at + 5000}) for _ in range(30)]
    row("zoom to 1 % of it, p50", median([took for took, _ in zoom]), "ms", "< 15")
    _, (near,) = api.series(trialIds=trial, **{"from": at - 400, "to": at + 400})
    assert near["raw"]
    assert max(near["last"]) > 999, "the spike is lost"
    by_time = [api.series(trialIds=trial, x="time")[0] for _ in range(10)]
    row("the same over time, p50", median(by_time), "ms")
    first, everything = api.series(trialIds=trials)
    assert [one["count"] for one in everything] == [POINTS] * SERIES
    row(f"{SERIES} series of 1,000,000 points, first time", first, "ms")
    again = [api.series(trialIds=trials)[0] for _ in range(5)]
    row(f"{SERIES} series of 1,000,000 points, p50", median(again), "ms", "< 500")


def browse(home: Home) -> None:
    """All of them on one chart in a browser: from the click, and while the pointer runs over it."""
    drawn = []
    with signed_in(address(home)) as page:
        for _ in range(7):
            page.goto(f"/det/experiments/compare?e=1&n={SERIES}&v=details")
            page.get_by_role("table", name="Details").wait_for()
            began = time.perf_counter()
            page.get_by_role("button", name="Metrics").click()
            page.locator("figure[aria-label=loss][aria-busy=false] canvas").first.wait_for()
            drawn.append((time.perf_counter() - began) * 1e3)
        row(f"{SERIES} series of 1,000,000 points: click to drawn", median(drawn), "ms", "< 1,500")
        row("longest of the tasks over 50 ms while the pointer runs over them", hovering(page), "ms", "< 50")


def hovering(page: Page) -> float:
    """Milliseconds of the longest task of a page while the pointer goes over its first chart."""
    page.evaluate(NOTE_TASKS)
    box = page.locator(".u-over, .drawing").first.bounding_box()
    assert box
    for at in range(200):
        x, y = box["x"] + box["width"] * at / 200, box["y"] + box["height"] * (at * 7 % 200) / 200
        page.mouse.move(x, y)
    return float(page.evaluate(LONGEST))


if __name__ == "__main__":
    main()

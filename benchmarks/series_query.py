"""Charts of a million points over HTTP, from a local cluster that a real script reported to.

python -m benchmarks.series_query [--quick]
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.browser import signed_in
from benchmarks.kit.cluster import address, running_cluster
from benchmarks.kit.table import median, percentile, row
from determined.experimental import client
from services.local.control import start_program, stop_program
from services.local.home import Home

if TYPE_CHECKING:
    from playwright.sync_api import Page

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


@dataclass(frozen=True)
class Size:
    points: int = 1_000_000
    series: int = 50
    """Number of series with that many points."""
    times: int = 30
    times_of_all: int = 5
    pages: int = 7
    moves: int = 200
    """Of the pointer."""


class Api:
    """The gateway, as a browser uses it."""

    def __init__(self, home: Home) -> None:
        self._url = address(home)
        body = json.dumps({"username": "determined", "password": ""}).encode()
        request = urllib.request.Request(f"{self._url}/api/v1/auth/login", body)
        with urllib.request.urlopen(request) as answer:
            self._token = json.load(answer)["token"]

    def series(self, **params: Any) -> tuple[float, list[Any]]:
        """Milliseconds of one answer, and its content."""
        query = urlencode({"names": "loss", "group": "training", "width": 1000} | params, doseq=True)
        request = urllib.request.Request(f"{self._url}/api/v1/series?{query}")
        request.add_header("Authorization", f"Bearer {self._token}")
        began = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            body = answer.read()
        return (time.perf_counter() - began) * 1e3, json.loads(body)["series"]

    def wait(self, trial: int) -> None:
        """Return once the metrics service answers; this request is not measured."""
        while True:
            with contextlib.suppress(urllib.error.HTTPError):
                self.series(trialIds=trial, group="validation")
                return
            time.sleep(0.05)


def report(home: Home, size: Size) -> tuple[int, list[int]]:
    """Let one of very many trials report all points; returns the ids of the experiment and the trials."""
    count = size.series
    number = {"type": "int", "minval": 0, "maxval": count - 1, "count": count}
    client.login(address(home), "determined", "")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "script.py").write_text(SCRIPT.format(points=size.points))
        experiment = client.create_experiment(CONFIG | {"hyperparameters": {"number": number}}, folder)
    experiment.wait(interval=0.5)
    return experiment.id, sorted(trial.id for trial in experiment.get_trials())


def copy(home: Home, trials: list[int]) -> int:
    """Give all trials the points of the one that reported; returns that one.

    The metrics service must not run meanwhile. Ids below zero are never assigned by it.
    """
    (path,) = home.path.rglob("metrics.db")
    database = sqlite3.connect(path)
    source_query = "SELECT trial_id, id FROM strands WHERE kind = 'training' AND trial_id BETWEEN ? AND ?"
    ((source, strand),) = database.execute(source_query, (min(trials), max(trials)))
    highest = "SELECT max(id) FROM (SELECT id FROM chunks UNION ALL SELECT id FROM strands)"
    offset = database.execute(highest).fetchone()[0] + 1
    for number, trial in enumerate(sorted(set(trials) - {source}), 1):
        moved = -number * offset
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


def bytes_per_point(home: Home, points: int) -> float:
    """Bytes on disk, counting only chunks and their index."""
    (path,) = home.path.rglob("metrics.db")
    database = sqlite3.connect(path)
    database.execute("VACUUM")
    pages = database.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN {(*COPIED, 'chunks_by_strand')}")
    per_point = float(pages.fetchone()[0]) / points
    database.close()
    return per_point


def main(size: Size) -> None:
    with running_cluster(slots=1) as home:
        experiment, trials = report(home, size)
        stop_program(home, "metrics")
        row("bytes on disk", bytes_per_point(home, size.points), "bytes/point", "<= 12")
        source = copy(home, trials)
        start_program(home, "metrics")
        measure(Api(home), source, trials, size)
        browse(home, experiment, size)


def measure(api: Api, trial: int, trials: list[int], size: Size) -> None:
    api.wait(trial)
    points = f"{size.points:,} points"
    cold, (curve,) = api.series(trialIds=trial)
    assert curve["count"] == size.points
    assert max(curve["max"]) > 999, "the spike is lost"
    row(f"{points} to 1,000 buckets, first time", cold, "ms", "< 100")
    warm = [api.series(trialIds=trial)[0] for _ in range(size.times)]
    row(f"{points} to 1,000 buckets, p50", median(warm), "ms", "< 20")
    row(f"{points} to 1,000 buckets, p95", percentile(warm, 0.95), "ms", "< 100")
    at, near_it = size.points * 2 // 3, size.points // 200
    part = {"trialIds": trial, "from": at - near_it, "to": at + near_it}
    zoom = [api.series(**part)[0] for _ in range(size.times)]
    row("zoom to 1 % of it, p50", median(zoom), "ms", "< 15")
    _, (near,) = api.series(trialIds=trial, **{"from": at - 400, "to": at + 400})
    assert near["raw"]
    assert max(near["last"]) > 999, "the spike is lost"
    by_time = [api.series(trialIds=trial, x="time")[0] for _ in range(size.times)]
    row("the same over time, p50", median(by_time), "ms")
    first, everything = api.series(trialIds=trials)
    assert [series["count"] for series in everything] == [size.points] * size.series
    row(f"{size.series} series of {points}, first time", first, "ms")
    again = [api.series(trialIds=trials)[0] for _ in range(size.times_of_all)]
    row(f"{size.series} series of {points}, p50", median(again), "ms", "< 500")


def browse(home: Home, experiment: int, size: Size) -> None:
    """All trials on one chart in a browser: from the click, and while the pointer moves over it."""
    drawn = []
    with signed_in(address(home)) as page:
        for _ in range(size.pages):
            page.goto(f"/det/experiments/compare?e={experiment}&n={size.series}&v=details")
            page.get_by_role("table", name="Details").wait_for()
            began = time.perf_counter()
            page.get_by_role("button", name="Charts", exact=True).click()
            page.locator("figure[aria-label=loss][aria-busy=false] canvas").first.wait_for()
            drawn.append((time.perf_counter() - began) * 1e3)
        measure = f"{size.series} series of {size.points:,} points: click to drawn"
        row(measure, median(drawn), "ms", "< 1,500")
        longest = hovering(page, size.moves)
        row("longest of the tasks over 50 ms while the pointer runs over them", longest, "ms", "< 50")


def hovering(page: Page, moves: int) -> float:
    """Milliseconds of a page's longest task while the pointer moves over its first chart."""
    page.evaluate(NOTE_TASKS)
    box = page.locator(".u-over, .drawing").first.bounding_box()
    assert box
    for at in range(moves):
        x, y = box["x"] + box["width"] * at / moves, box["y"] + box["height"] * (at * 7 % moves) / moves
        page.mouse.move(x, y)
    return float(page.evaluate(LONGEST))


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(points=2000, series=3, times=2, times_of_all=1, pages=1, moves=5),
    needs=("playwright", "chromium", "web UI"),
)

if __name__ == "__main__":
    BENCHMARK.run()

"""In a browser: from a report and a printed line to the screen, and a million points.

Needs chromium and the built web UI:

python -m benchmarks.charts [--quick]
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.browser import signed_in
from benchmarks.kit.cluster import user_cluster
from benchmarks.kit.table import median, percentile, row
from tests.fixtures.outside import UnmanagedExperiment
from tests.fixtures.painting import RECORD_PAINTS, measure_paint_s, reporting

if TYPE_CHECKING:
    from playwright.sync_api import Page

LONG = """
import random
import determined as det

with det.core.init() as core:
    for step in range(1, {points} + 1):
        core.train.report_training_metrics(steps_completed=step, metrics={{"noise": random.random()}})
    for op in core.searcher.operations():
        op.report_completed(0.0)
"""
CONFIG = "{name: long, entrypoint: python3 long.py, searcher: {name: single, metric: x, max_length: 1}}"
TALK = """
import time
from pathlib import Path

while not Path({looked_on!r}).exists():
    time.sleep(0.05)
for n in range({count}):
    print(f"said at {{time.time():.4f}}", flush=True)
    # Not in step with anything that gathers lines.
    time.sleep(0.2 + n % 7 / 50)
print("that is all", flush=True)
"""
NOTE_LINES = """
() => {
  window.seen = [];
  const known = new Set();
  const note = () => {
    for (const [, at] of document.querySelector(".log").textContent.matchAll(/said at ([0-9.]+)/g)) {
      if (known.has(at)) continue;
      known.add(at);
      requestAnimationFrame(() => seen.push(Date.now() / 1000 - Number(at)));
    }
  };
  note();
  seen.length = 0;
  const all = { subtree: true, childList: true, characterData: true };
  new MutationObserver(note).observe(document.querySelector(".log"), all);
}
"""
FIRST = """
() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  performance.getEntriesByType("resource").filter((one) => one.name.includes("/assets/"))
    .reduce((sum, one) => sum + one.encodedBodySize, 0) / 1000,
]
"""


@dataclass(frozen=True)
class Size:
    trials: int = 100
    reports: int = 60
    points: int = 1_000_000
    rounds: int = 7


def main(size: Size) -> None:
    """Print the rows."""
    with (
        tempfile.TemporaryDirectory() as folder,
        user_cluster(slots=1) as cluster,
        signed_in(cluster.address) as page,
    ):
        weight(page, size.rounds)
        live(cluster, page, Path(folder), size)
        long(cluster, page, Path(folder), size)


def weight(page: Page, rounds: int) -> None:
    """The first page."""
    painted = []
    for _ in range(rounds):
        page.reload()
        page.get_by_role("heading", name="Dashboard").wait_for()
        at, size = page.evaluate(FIRST)
        painted.append(at)
    row("dashboard: scripts and styles, compressed", size, "kB", "< 250")
    row("dashboard: first contentful paint", median(painted), "ms")


def live(cluster: Any, page: Page, folder: Path, size: Size) -> None:
    """A report and a log line reach the screen."""
    outside = UnmanagedExperiment(cluster, "very-many", trials=size.trials)
    watched, *others = outside.trials
    outside.report(watched, 1, loss=1)
    page.goto(f"/det/trials/{watched}")
    page.locator("figure[aria-label=loss] output").wait_for()
    page.evaluate(RECORD_PAINTS)
    with reporting(outside, others):
        values = range(100, 100 + size.reports)
        waited = [measure_paint_s(page, outside, watched, value) for value in values]
        printed = lines(cluster, page, folder, size.reports)
    active = f"{size.trials} active trials"
    row(f"report to painted, {active}, p50", 1000 * median(waited), "ms")
    row(f"report to painted, {active}, p95", 1000 * percentile(waited, 0.95), "ms", "< 1,000")
    row(f"line printed to painted, {active}, p50", median(printed), "ms")
    row(f"line printed to painted, {active}, p95", percentile(printed, 0.95), "ms", "< 1,000")


def lines(cluster: Any, page: Page, folder: Path, count: int) -> list[float]:
    """Milliseconds from printing a line to the frame after it is on the page."""
    looked_on = folder / "looked-on"
    (folder / "talk.py").write_text(TALK.format(count=count, looked_on=str(looked_on)))
    (folder / "config.yaml").write_text(CONFIG.replace("long", "talk"))
    id = cluster.create("config.yaml", folder)
    page.goto(f"/det/trials/{cluster.first_trial(id)}")
    page.get_by_role("link", name="Logs").click()
    page.locator(".log").wait_for()
    page.evaluate(NOTE_LINES)
    looked_on.touch()
    page.locator(".log").get_by_text("that is all").wait_for(timeout=120_000)
    cluster.wait_for_end(id)
    latencies = page.evaluate("seen")
    return [1000 * took for took in latencies]


def long(cluster: Any, page: Page, folder: Path, size: Size) -> None:
    """A series of a million points on the screen: whole, and a hundredth of it."""
    (folder / "long.py").write_text(LONG.format(points=size.points))
    (folder / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", folder)
    cluster.wait_for_end(id, within_s=600)
    place = f"/det/experiments/{id}/trials/{cluster.trials(id)[0]['id']}"
    drawn = [_drawn_ms(page, place) for _ in range(size.rounds)]
    row(f"{size.points:,} points: click to drawn", median(drawn), "ms", "< 300")
    page.goto(f"{place}/overview")
    zoomed = [_zoomed_ms(page) for _ in range(size.rounds)]
    row("a hundredth of it, by dragging: to drawn", median(zoomed), "ms")


def _zoomed_ms(page: Page) -> float:
    figure = page.locator("figure[aria-busy=false]").first
    box = figure.locator(".u-over").bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 200, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 206, middle)
    at = time.perf_counter()
    page.mouse.up()
    page.wait_for_url("**z=*")
    figure.locator("canvas").first.wait_for()
    took_ms = 1000 * (time.perf_counter() - at)
    figure.get_by_role("button", name="Whole range").click()
    page.locator("figure[aria-busy=false]").first.wait_for()
    return took_ms


def _drawn_ms(page: Page, place: str) -> float:
    page.goto(f"{place}/metrics")
    page.get_by_role("table", name="Metrics").wait_for()
    at = time.perf_counter()
    page.get_by_role("link", name="Overview", exact=True).click()
    page.locator("figure[aria-busy=false] canvas").first.wait_for()
    return 1000 * (time.perf_counter() - at)


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(trials=3, reports=2, points=2000, rounds=1),
    needs=("playwright", "chromium", "web UI"),
)

if __name__ == "__main__":
    BENCHMARK.run()

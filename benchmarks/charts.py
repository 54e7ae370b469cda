"""A browser: from a report and a printed line to the screen, and a million points.

Needs chromium and the built web UI:

python -m benchmarks.charts
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from benchmarks.browser import signed_in
from benchmarks.table import head, median, percentile, row
from services.kit import broker
from tests.fixtures.local_cluster import LocalCluster
from tests.fixtures.outside import Outside
from tests.fixtures.painting import NOTE, reporting, until_painted_s

TRIALS, REPORTS, ROUNDS = 100, 60, 7
POINTS = 1_000_000
LONG = f"""
import random
import determined as det

with det.core.init() as core:
    for step in range(1, {POINTS} + 1):
        core.train.report_training_metrics(steps_completed=step, metrics={{"noise": random.random()}})
    for op in core.searcher.operations():
        op.report_completed(0.0)
"""
CONFIG = "{name: long, entrypoint: python3 long.py, searcher: {name: single, metric: x, max_length: 1}}"
TALK = f"""
import time

# Until a page looks on.
time.sleep(5)
for n in range({REPORTS}):
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


def main() -> None:
    """Print the rows."""
    head()
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        script = Path(folder, "script")
        script.mkdir()
        cluster = LocalCluster(Path(folder, "cluster"), port=broker.free_port(), slots=1).up()
        try:
            with signed_in(cluster.address) as page:
                weight(page)
                live(cluster, page, script)
                long(cluster, page, script)
        finally:
            cluster.down()


def weight(page: Page) -> None:
    """The first page."""
    painted = []
    for _ in range(ROUNDS):
        page.reload()
        page.get_by_role("heading", name="Dashboard").wait_for()
        at, size = page.evaluate(FIRST)
        painted.append(at)
    row("dashboard: scripts and styles, compressed", size, "kB", "< 250")
    row("dashboard: first contentful paint", median(painted), "ms")


def live(cluster: Any, page: Page, folder: Path) -> None:
    """A report, and a line of a log, reach the screen."""
    outside = Outside(cluster, "a-hundred", trials=TRIALS)
    watched, *others = outside.trials
    outside.report(watched, 1, loss=1)
    page.goto(f"/det/trials/{watched}")
    page.locator("figure[aria-label=loss] output").wait_for()
    page.evaluate(NOTE)
    with reporting(outside, others):
        waited = [until_painted_s(page, outside, watched, value) for value in range(100, 100 + REPORTS)]
        printed = lines(cluster, page, folder)
    row("report to painted, 100 active trials, p50", 1000 * median(waited), "ms")
    row("report to painted, 100 active trials, p95", 1000 * percentile(waited, 0.95), "ms", "< 1,000")
    row("line printed to painted, 100 active trials, p50", median(printed), "ms")
    row("line printed to painted, 100 active trials, p95", percentile(printed, 0.95), "ms", "< 1,000")


def lines(cluster: Any, page: Page, folder: Path) -> list[float]:
    """Milliseconds from a line's print to the frame after it is on the page."""
    (folder / "talk.py").write_text(TALK)
    (folder / "config.yaml").write_text(CONFIG.replace("long", "talk"))
    id = cluster.create("config.yaml", folder)
    page.goto(f"/det/trials/{cluster.first_trial(id)}")
    page.get_by_role("link", name="Logs").click()
    page.locator(".log").wait_for()
    page.evaluate(NOTE_LINES)
    page.locator(".log").get_by_text("that is all").wait_for(timeout=120_000)
    cluster.wait_for_end(id)
    seen = page.evaluate("seen")
    return [1000 * took for took in seen]


def long(cluster: Any, page: Page, folder: Path) -> None:
    """A series of a million points on the screen: whole, and a hundredth of it."""
    (folder / "long.py").write_text(LONG)
    (folder / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", folder)
    cluster.wait_for_end(id, within_s=600)
    place = f"/det/experiments/{id}/trials/{cluster.trials(id)[0]['id']}"
    drawn = [_drawn_ms(page, place) for _ in range(ROUNDS)]
    row("1,000,000 points: click to drawn", median(drawn), "ms", "< 300")
    page.goto(f"{place}/overview")
    zoomed = [_zoomed_ms(page) for _ in range(ROUNDS)]
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
    found = 1000 * (time.perf_counter() - at)
    figure.get_by_role("button", name="Whole range").click()
    page.locator("figure[aria-busy=false]").first.wait_for()
    return found


def _drawn_ms(page: Page, place: str) -> float:
    page.goto(f"{place}/metrics")
    page.get_by_role("table", name="Metrics").wait_for()
    at = time.perf_counter()
    page.get_by_role("link", name="Overview", exact=True).click()
    page.locator("figure[aria-busy=false] canvas").first.wait_for()
    return 1000 * (time.perf_counter() - at)


if __name__ == "__main__":
    main()

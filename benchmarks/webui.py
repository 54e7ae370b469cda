"""A browser with very much to show: scrolling a list of experiments, and lines under the pointer.

The pages are the real ones of a cluster. Their requests for experiments, trials and series are answered here,
at once; `benchmarks.catalogue` and `benchmarks.series_query` measure the gateway.

python -m benchmarks.webui [--quick]
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.browser import signed_in
from benchmarks.kit.cluster import user_cluster
from benchmarks.kit.table import median, percentile, row
from tests.fixtures.outside import UnmanagedExperiment

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

POINTS = 60
"""Points of a line when thousands share a chart."""
FRAME = "< 17"
FRAMES = """
([count, act]) => new Promise((done) => {
  const took = [];
  const step = new Function("at", act);
  let before = performance.now();
  const next = (now) => {
    took.push(now - before);
    before = now;
    if (took.length > count) return done(took.slice(1));
    step(took.length);
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})
"""
"""Milliseconds between frames, while something is done in each of them."""
SCROLL = "document.querySelector('.tw').scrollTop += 340"
POINT = """
const over = document.querySelector("figure .u-over");
const { left, top, width, height } = over.getBoundingClientRect();
const [x, y] = [(at * 37) % 100, (at * 53) % 100];
const place = { clientX: left + (width * x) / 100, clientY: top + (height * y) / 100 };
over.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, ...place }));
"""


@dataclass(frozen=True)
class Size:
    experiments: int = 100_000
    lines: int = 2000
    frames: int = 300


def main(size: Size) -> None:
    """Print the rows."""
    with user_cluster(slots=1) as cluster, signed_in(cluster.address) as page:
        outside = UnmanagedExperiment(cluster, "scrolled-and-pointed-at", trials=2)
        for trial in outside.trials:
            outside.report(trial, 1, "validation", loss=0.5)
        experiments = cluster.get("experiments-search", lean="true")
        trials = cluster.get(f"experiments/{outside.id}/trials", lean="true")
        scrolled(page, experiments, size)
        pointed(page, outside.id, trials, size)


def scrolled(page: Page, experiments: Any, size: Size) -> None:
    """Scroll ten rows with each frame."""
    answer(page, "experiments-search", lambda query: listed(experiments, query, size.experiments))
    page.goto("/det/experiments")
    page.get_by_text(f"{size.experiments:,} found").wait_for()
    tell(f"a list of {size.experiments:,} experiments scrolls", *moved(page, size.frames, SCROLL))


def listed(experiments: Any, query: dict[str, list[str]], count: int) -> Any:
    """A page of the list: the same experiment under other ids."""
    offset, limit = (int(query.get(name, ["0"])[0]) for name in ("offset", "limit"))
    first = experiments["experiments"][0]
    ids = range(count - offset, max(0, count - offset - limit), -1)
    rows = [
        first | {"experiment": first["experiment"] | {"id": id, "name": f"experiment {id}"}} for id in ids
    ]
    place = {"total": count, "offset": offset, "startIndex": offset, "limit": limit}
    return {"experiments": rows, "pagination": experiments["pagination"] | place}


def pointed(page: Page, experiment: int, trials: Any, size: Size) -> None:
    """The pointer jumps over a chart with so many lines."""
    answer(page, f"experiments/{experiment}/trials", lambda _: of_trials(trials, size.lines))
    answer(page, "series", lambda query: {"series": [line(int(id)) for id in query["trialIds"]]})
    page.goto(f"/det/experiments/{experiment}/overview")
    page.locator("figure[aria-busy=false] canvas").first.wait_for(timeout=120_000)
    tell(f"a chart of {size.lines:,} lines answers the pointer", *moved(page, size.frames, POINT))


def of_trials(trials: Any, count: int) -> Any:
    """The first trial, under so many ids."""
    first = trials["trials"][0]
    return trials | {"trials": [first | {"id": id} for id in range(1, count + 1)]}


def line(trial: int) -> dict[str, Any]:
    """A curve as the gateway returns it, each a little different."""
    batches = [100 * (at + 1) for at in range(POINTS)]
    last = [2 * math.exp(-at / 20) + trial % 97 / 97 for at in range(POINTS)]
    series = {"trialId": trial, "group": "validation", "name": "loss", "count": POINTS, "nonFinite": 0}
    return series | {"raw": True, "monotone": True, "x": batches, "batches": batches, "last": last}


def answer(page: Page, path: str, made: Callable[[dict[str, list[str]]], Any]) -> None:
    """Answer the page's requests with the result of `made` for their parameters."""

    def fulfil(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        query["trialIds"] = [id for ids in query.get("trialIds", []) for id in ids.split(",")]
        route.fulfill(json=made(query))

    page.route(re.compile(rf"/api/v1/{path}\?"), fulfil)


def moved(page: Page, frames: int, act: str) -> tuple[list[float], float]:
    """Frame times, and the page's own processor time per frame; milliseconds."""
    about = page.context.new_cdp_session(page)
    about.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = about.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    before = spent()
    took = page.evaluate(FRAMES, [frames, act])
    return took, (spent() - before) / frames


def tell(what: str, took: list[float], spent: float) -> None:
    """Print frame times; on a busy machine only the processor time says something about the page."""
    row(f"{what}: processor time for a frame", spent, "ms", FRAME)
    row(f"{what}: frame, p50", median(took), "ms")
    row(f"{what}: frame, p95", percentile(took, 0.95), "ms", FRAME)


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(experiments=300, lines=20, frames=20),
    needs=("playwright", "chromium", "web UI"),
)

if __name__ == "__main__":
    BENCHMARK.run()

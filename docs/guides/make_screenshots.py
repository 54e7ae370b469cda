"""Takes the pictures of this folder: every page of the web UI with data of the examples, in both themes.

python docs/guides/make_screenshots.py [PAGE ...]

Starts a cluster of its own in a temporary folder and stops it. Needs chromium, Playwright, Pillow, numpy,
and what the examples need.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.fixtures.chromium import CHROMIUM  # noqa: E402
from tests.fixtures.local_cluster import LocalCluster  # noqa: E402

PICTURES = Path(__file__).parent / "pictures"
EXAMPLES = ROOT / "examples"
NAME = "steadfast"
"""Of the cluster, in the upper left corner of every picture."""
SIZE = {"width": 1440, "height": 900}
COLOURS, EXACT = 224, 64
"""Of a picture, and how many of them are its most frequent ones as they are; it has 70 kB still."""
COLUMNS = "id,name,tags,state,progress,numTrials,course,searcherMetricsVal,hp.learning_rate,runningTime,user"
REST_MS = 1500
QUIET, MOST = 5, 400
"""Looks in a row at a page that find nothing that loads, and how often it is looked at."""
LOADS = ".skeleton, figure[aria-busy=true], [data-tip='It is being checked'], .failures > li:not(:has(.why))"
"""Lists and charts without data, a form that is being checked, and failures without their cause."""
LOADS_FOR_GOOD = {"components"}
"""Pages that show what loads as an example."""
VERSIONS = 3
"""Of the model."""
FAILS = """
name: digits-on-a-missing-file
entrypoint: python3 fail.py
max_restarts: 0
searcher: {name: single, metric: loss, max_length: 1}
"""
DISTRIBUTED = """
import os, time
import determined as det

rank = os.environ["RANK"]
with det.core.init(distributed=det.core.DistributedContext.from_torch_distributed()) as core:
    for step in range(1, 40):
        print(f"INFO step {step} of rank {rank}: 512 samples", flush=True)
        if rank == "0":
            core.train.report_training_metrics(steps_completed=step, metrics={"loss": 2.3 / step})
        time.sleep(0.05)
        if rank == "1" and step == 30:
            raise ValueError("sample 4711 of shard 3 has 27 pixels, 28 are expected")
"""
DISTRIBUTED_CONFIG = """
name: digits-on-two-slots
entrypoint: python3 -m determined.launch.torch_distributed -- python3 distributed.py
max_restarts: 0
resources: {slots_per_trial: 2}
searcher: {name: single, metric: loss, max_length: 100}
"""
POOLS = "resource_pools: [{pool_name: default, scheduler: {type: priority, preemption: true}}]"
TOO_LARGE = """
name: weights-on-64-slots
entrypoint: python3 3_search.py
hyperparameters: {growth: 1}
resources: {slots_per_trial: 64}
searcher: {name: single, metric: weight, max_length: 100}
"""
LONG = """
name: weights-for-long
entrypoint: python3 3_search.py
hyperparameters: {growth: 1}
searcher: {name: single, metric: weight, max_length: 50000}
"""


def fill(cluster: Any, folder: Path) -> dict[str, int]:
    """Submit examples; returns ids by name."""
    core = shutil.copytree(EXAMPLES / "core_api", folder / "core")
    digits = shutil.copytree(EXAMPLES / "digits_search", folder / "digits")
    (core / "fail.py").write_text("open('/data/digits.csv')\n")
    (core / "fail.yaml").write_text(FAILS)
    (core / "long.yaml").write_text(LONG)
    (core / "large.yaml").write_text(TOO_LARGE)
    (core / "distributed.py").write_text(DISTRIBUTED)
    (core / "distributed.yaml").write_text(DISTRIBUTED_CONFIG)
    ids = {
        "search": cluster.create("adaptive.yaml", digits),
        "single": cluster.create("const.yaml", digits),
        "checkpoints": cluster.create("2_checkpoints.yaml", core),
        "failed": cluster.create("fail.yaml", core),
        "distributed": cluster.create("distributed.yaml", core),
    }
    for id in ids.values():
        cluster.wait_for_end(id, within_s=900)
    cluster.api("PATCH", f"experiments/{ids['search']}", json={"labels": ["digits", "sweep"]})
    cluster.api("PATCH", f"experiments/{ids['single']}", json={"labels": ["digits"]})
    register(cluster, ids["search"])
    file_away(cluster, ids["search"], ids["single"], ids["distributed"])
    for _ in range(6):
        ids["running"] = cluster.create("long.yaml", core)
    cluster.tell(cluster.create("long.yaml", core), "pause")
    cluster.create("large.yaml", core)
    return ids


def file_away(cluster: Any, *experiments: int) -> None:
    """Two more users, and a project for the digits in a workspace of its own."""
    for name in ("ann", "ben"):
        cluster.api("POST", "users", user="admin", json={"user": {"username": name, "active": True}})
    space = cluster.api("POST", "workspaces", json={"name": "Vision"})["workspace"]["id"]
    project = cluster.api("POST", f"workspaces/{space}/projects", json={"name": "Digits"})["project"]["id"]
    for id in experiments:
        cluster.api("POST", f"experiments/{id}/move", json={"destinationProjectId": project})


def register(cluster: Any, experiment: int) -> None:
    """The best checkpoints of the search, which retention keeps, as versions of a model; best last."""
    cluster.api("POST", "models", json={"name": "digits", "description": "reads handwritten digits"})
    best = {"sortBy": "SORT_BY_SEARCHER_METRIC", "orderBy": "ORDER_BY_DESC", "states": "STATE_COMPLETED"}
    page = cluster.get(f"experiments/{experiment}/checkpoints", **best)
    for checkpoint in reversed(page["checkpoints"][:VERSIONS]):
        cluster.api("POST", "models/digits/versions", json={"checkpointUuid": checkpoint["uuid"]})


def pages(cluster: Any, ids: dict[str, int]) -> dict[str, str]:
    """Addresses by the name of their picture."""
    search, single = f"/experiments/{ids['search']}", f"/experiments/{ids['single']}"
    best = cluster.experiment(ids["search"])["bestTrialId"]
    failed = cluster.trials(ids["failed"])[0]["id"]
    return {
        "dashboard": "/dashboard",
        "experiments": f"/experiments?g=projectId&c={COLUMNS}",
        "new": f"/experiments/new?from={ids['search']}",
        "compare": f"/experiments/compare?e={ids['search']},{ids['single']}",
        **{
            tab: f"{search}/{tab}"
            for tab in ("overview", "hyperparameters", "trials", "checkpoints", "code", "story")
        },
        "notes": f"{single}/notes",
        "trial": f"{search}/trials/{best}/overview",
        "metrics": f"{search}/trials/{best}/metrics",
        "logs": f"/experiments/{ids['failed']}/trials/{failed}/logs",
        "cluster": "/clusters",
        "queue": "/jobs",
        "models": f"/models/digits?open={VERSIONS}",
        "workspaces": "/workspaces/1",
        "tasks": "/tasks",
        "settings": "/settings/users",
        "events": "/system/events",
        "health": "/system/events?view=health",
        "components": "/system/components",
    }


def take(page: Page, name: str, address: str, scheme: str) -> None:
    """One picture, as soon as the page has come to rest."""
    page.goto(f"/det{address}")
    page.locator("main h1, main h2").first.wait_for()
    if name in LOADS_FOR_GOOD:
        page.wait_for_timeout(REST_MS)
    else:
        come_to_rest(page)
    save(page.screenshot(), PICTURES / f"{name}-{scheme}.png")


def come_to_rest(page: Page) -> None:
    """Waits until all is loaded and drawn, however busy the machine is."""
    quiet = 0
    for _ in range(MOST):
        page.wait_for_timeout(REST_MS / QUIET)
        quiet = 0 if page.locator(LOADS).count() else quiet + 1
        if quiet == QUIET:
            return
    raise TimeoutError(f"{page.url} still loads something")


def save(content: bytes, path: Path) -> None:
    """With few colours, so that it stays small."""
    path.write_bytes(content)
    with Image.open(path) as image:
        whole = image.convert("RGB")
    few = palette(whole)
    # Pillow's own search for the nearest colour is rough: grounds would change their hue.
    colours, place = np.unique(np.asarray(whole).reshape(-1, 3), axis=0, return_inverse=True)
    apart = ((colours[:, None].astype(int) - few[None]) ** 2).sum(axis=2)
    nearest = apart.argmin(axis=1).astype(np.uint8)
    small = Image.fromarray(nearest[place].reshape(whole.height, whole.width), "P")
    small.putpalette(few.flatten().tolist())
    small.save(path, optimize=True)


def palette(image: Image.Image) -> Any:
    """The most frequent colours as they are, then some that are near to all others, however rare."""
    counted: Any = image.getcolors(image.width * image.height)
    frequent = [colour for _, colour in sorted(counted, reverse=True)[:EXACT]]
    near = image.quantize(COLOURS - EXACT, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    return np.array([*frequent, *zip(near[::3], near[1::3], near[2::3], strict=True)], dtype=int)


def main(wanted: list[str]) -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as made:
        pools = Path(folder) / "pools.yaml"
        pools.write_text(POOLS)
        cluster = LocalCluster(Path(folder) / "cluster", name=NAME, slots=4, pools_file=str(pools)).up()
        try:
            ids = fill(cluster, Path(folder))
            browser = made.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for scheme in ("light", "dark"):
                context = browser.new_context(base_url=cluster.address, viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
                page = context.new_page()
                page.goto("/det/login")
                page.get_by_role("button", name="Sign in").wait_for()
                save(page.screenshot(), PICTURES / f"login-{scheme}.png")
                page.get_by_role("button", name="Sign in").click()
                page.wait_for_url("**/dashboard")
                for name, address in pages(cluster, ids).items():
                    if not wanted or name in wanted:
                        take(page, name, address, scheme)
                        print(name, scheme, flush=True)
                context.close()
            browser.close()
        finally:
            cluster.down()


if __name__ == "__main__":
    main(sys.argv[1:])

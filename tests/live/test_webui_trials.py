"""A trial in the web UI: how it failed, how it is continued, where it ran."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.outside import UnmanagedExperiment
from tests.live.webui_charts import (
    SEARCH,
    SEARCH_CONFIG,
    chart,
    submitted,
    zoom,
)

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
expect.set_options(timeout=60 * SECONDS)

pytestmark = MARKS


BREAKS = """
import sys
import time

for rank in (0, 1):
    print(f"[rank={rank}] INFO: begins", flush=True)
print("[rank=1] Traceback (most recent call last):", flush=True)
print("[rank=1] RuntimeError: rank one ran out of data", flush=True)
# What other ranks say of it comes later.
time.sleep(0.3)
print("[rank=0] ERROR: ConnectionError: rank 1 is gone", flush=True)
sys.exit(1)
"""
NAMES = "<b>w" + "w" * 198
BREAKS_CONFIG = f"""
name: {NAMES}
description: {NAMES}
labels: [{", ".join(f"{NAMES[:40]}{at}" for at in range(40))}]
entrypoint: python3 breaks.py
max_restarts: 0
searcher: {{name: single, metric: x, max_length: 10}}
"""
SIZES = (390, 1280, 1440, 1920)
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.full
def test_a_failure_comes_first_whatever_its_names_are(cluster, signed_in, tmp_path):
    id = submitted(cluster, tmp_path, BREAKS, BREAKS_CONFIG, "breaks.py")
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{id}/overview")
    # The first error in time, not the one of the first rank.
    note = page.locator(".note.error", has_text="Rank 1 failed first")
    expect(note).to_contain_text("rank one ran out of data")
    expect(page.get_by_text("It ended before reporting any metrics")).to_be_visible()
    expect(page.get_by_role("link", name="Open log at the cause")).to_be_visible()
    for path in (f"experiments/{id}/overview", f"trials/{cluster.first_trial(id)}"):
        page.goto(f"/det/{path}")
        for width in SIZES:
            page.set_viewport_size({"width": width, "height": 900})
            expect(page.locator(".stats")).to_be_visible()
            assert page.evaluate(BEYOND) <= 0, (path, width)
    page.get_by_role("link", name="Open log at the cause").click()
    expect(page.locator(".line", has_text="rank one ran out of data")).to_be_in_viewport()


@pytest.mark.full
def test_a_trial_is_continued_in_a_dialog_that_says_what_is_wrong(cluster, signed_in, long_trial):
    experiment, trial = long_trial
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{experiment}/overview")
    page.get_by_role("button", name="Continue", exact=True).click()
    dialog = page.get_by_role("dialog", name=f"Continue trial {trial}")
    dialog.get_by_label("Train until").fill("4")
    expect(dialog.get_by_role("alert")).to_contain_text("It has already reached 16. Enter more than that.")
    dialog.get_by_label("Train until").fill("20")
    dialog.get_by_label("Change hyperparameters").fill("momentum: 1")
    expect(dialog.get_by_role("alert")).to_contain_text("There is no hyperparameter momentum.")
    dialog.get_by_label("Change hyperparameters").fill("lr: 0.01")
    dialog.get_by_role("button", name="Continue trial").click()
    expect(page).to_have_url(re.compile(f"/experiments/{experiment + 1}/overview"))
    config = cluster.experiment(experiment + 1)["config"]
    assert config["searcher"]["max_length"] == {"batches": 20}
    assert config["searcher"]["source_trial_id"] == trial
    assert config["hyperparameters"]["lr"] == 0.01
    expect(page.get_by_role("link", name=f"trial {trial}")).to_be_visible()


@pytest.fixture
def long_trial(cluster, tmp_path):
    """A single trial that has ended, and its experiment."""
    head, _, tail = SEARCH_CONFIG.partition("hyperparameters:")
    tail = tail[tail.index("resources:") :]
    searcher = "{name: single, metric: loss, max_length: {batches: 16}}"
    config = f"{head}hyperparameters: {{lr: 0.001, act: relu, layers: 2}}\nsearcher: {searcher}\n{tail}"
    id = submitted(cluster, tmp_path, SEARCH, config, "search.py")
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    return id, cluster.first_trial(id)


@pytest.mark.full
def test_trials_that_a_script_makes_outside_are_all_shown(cluster, signed_in):
    """Their experiment is called a single one, whatever their number."""
    outside = UnmanagedExperiment(cluster, "several-outside", trials=3)
    for trial in outside.trials:
        outside.report(trial, 1, loss=trial)
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{outside.id}")
    chart(page, "loss")
    expect(page.locator(".trial-list [data-trial]")).to_have_count(3)
    page.get_by_role("link", name=re.compile("^Trials")).click()
    expect(page.get_by_role("table", name="Trials").locator("tbody tr")).to_have_count(3)


@pytest.mark.full
def test_what_the_worker_samples_is_drawn_over_time_whatever_the_others_are(cluster, signed_in):
    """Its steps are seconds since the run began, not batches."""
    outside = UnmanagedExperiment(cluster, "sampled-outside", trials=1)
    (trial,) = outside.trials
    outside.report(trial, 1, loss=1)
    began = datetime.now(UTC)
    labels = {"trialId": trial, "agentId": "a", "metricType": "PROFILER_METRIC_TYPE_PROCESS"}
    sampled = {
        "values": [1.0, 3.0, 2.0],
        "batches": [10, 20, 30],
        "timestamps": [(began + timedelta(seconds=10 * at)).isoformat() for at in (1, 2, 3)],
        "labels": labels | {"name": "cpu_cores.rank0"},
    }
    cluster.api("POST", "trials/profiler/metrics", json={"batches": [sampled]})
    page = signed_in(cluster)
    where = f"/det/experiments/{outside.id}/trials/{trial}"
    page.goto(f"{where}/overview")
    expect(chart(page, "loss").get_by_role("img", name=re.compile("over batches"))).to_be_visible()
    over_time = chart(page, "CPU of rank 0").get_by_role("img", name=re.compile("over time since start"))
    expect(over_time).to_be_visible()
    page.goto(f"{where}/profiler")
    figure = chart(page, "CPU of rank 0")
    expect(over_time).to_be_visible()
    axes = page.get_by_role("combobox", name="x", exact=True)
    expect(axes).to_have_value("since")
    expect(axes.get_by_role("option")).to_have_text(["time since start", "time"])
    zoom(page, figure, 0.2, 0.8)
    # The address says of which axis its range is.
    expect(page).to_have_url(re.compile("x=since&z="))
    page.reload()
    expect(figure.get_by_role("button", name="Whole range")).to_be_visible()

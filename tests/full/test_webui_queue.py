"""The queue of a pool by priorities: jobs are moved by hand; what that leads to is told before."""

import re

import pytest

from tests.fixtures.browser import MARKS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import LocalCluster, wait_for

pytestmark = MARKS
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
POOLS = "resource_pools: [{pool_name: default, scheduler: {type: priority, preemption: true}}]"
CONFIG = """
name: NAME
entrypoint: sleep 3600
max_restarts: 0
searcher: {name: single, metric: loss, max_length: 1}
"""


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranked")
    (folder / "pools.yaml").write_text(POOLS)
    cluster = LocalCluster(folder / "cluster", slots=1, pools_file=str(folder / "pools.yaml")).up()
    yield cluster
    cluster.down()


def test_a_job_is_moved_by_the_keyboard_and_by_dragging(ranked, signed_in, tmp_path):
    ids = {}
    for name in ("runs", "first", "second", "third"):
        (tmp_path / "config.yaml").write_text(CONFIG.replace("NAME", name))
        ids[name] = ranked.create("config.yaml", tmp_path)
    wait_for(lambda: ranked.experiment(ids["runs"])["state"] == "STATE_RUNNING", 60, "the first to run")
    page = signed_in(ranked)
    expect.set_options(timeout=60_000)
    page.goto("/det/jobs")
    rows = page.get_by_role("table", name="Waiting jobs").locator("tbody tr")
    expect(rows).to_have_count(3)

    def order():
        jobs = ranked.get("job-queues")["jobs"]
        return [job["name"] for job in jobs if job["summary"]["state"] == "STATE_QUEUED"]

    grip = page.get_by_role("button", name=re.compile("^Move third .*arrow keys"))
    grip.focus()
    page.keyboard.press("ArrowUp")
    announcement = page.get_by_role("status").filter(has_text="third ahead of second")
    expect(announcement).to_contain_text("Nothing is interrupted")
    assert order() == ["first", "second", "third"], "told, not done"
    page.keyboard.press("Enter")
    wait_for(lambda: order() == ["first", "third", "second"], 60, "the move")
    expect(page.get_by_text("Moved third ahead of second")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    wait_for(lambda: order() == ["first", "second", "third"], 60, "the way back")
    expect(rows.first).to_contain_text("first")
    page.get_by_role("button", name=re.compile("^Move second .*arrow keys")).drag_to(
        rows.first, target_position={"x": 300, "y": 4}
    )
    wait_for(lambda: order() == ["second", "first", "third"], 60, "the move by the pointer")
    for id in ids.values():
        ranked.api("POST", f"experiments/{id}/kill")

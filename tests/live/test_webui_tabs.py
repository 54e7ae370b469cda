"""Tabs of an experiment and the page of a new one: story, code, notes, a submission from the browser."""

import json
import re

import pytest

from tests.fixtures.browser import AXE, MARKS, SECONDS, violations
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import create as create
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS


@pytest.fixture
def page(cluster, signed_in):
    expect.set_options(timeout=60 * SECONDS)
    return signed_in(cluster)


SLEEPS = "import time; time.sleep(600)"


def spent(cluster, id, what):
    """Seconds that an experiment has spent so."""
    return cluster.get(f"experiments/{id}/timeline")["seconds"].get(what, 0)


@pytest.mark.full
def test_a_story_tells_states_causes_and_single_events(page, create, cluster):
    id = create("story", SLEEPS, wait=False)
    wait_for(lambda: cluster.experiment(id)["state"] == "STATE_RUNNING", 60, "the run")
    # What took no second is not shown.
    wait_for(lambda: spent(cluster, id, "ran") >= 1, 60, "a second of the run")
    cluster.det("e", "pause", id)
    wait_for(lambda: spent(cluster, id, "paused") >= 1, 60, "a second of the pause")
    cluster.det("e", "kill", id)
    cluster.wait_for_end(id)
    page.goto(f"/det/experiments/{id}/story")
    expect(page.get_by_text("paused by determined").first).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("ran .*paused"))).to_be_visible()
    page.get_by_label(re.compile("^Kind")).select_option("searcher.experiment.ended")
    events = page.locator(".card", has_text="Everything that happened").locator("ol.story:not(.chain *) > li")
    expect(events).to_have_count(1)
    events.locator("summary").click()
    expect(events).to_contain_text("Caused by")
    expect(events.locator("pre")).to_contain_text(f'"experiment_id": {id}')
    expect(page).to_have_url(re.compile("event=[0-9]+"))
    page.reload()
    expect(page.locator("li.here pre")).to_contain_text(f'"experiment_id": {id}')
    page.goto(f"/det/experiments/{id}/story?trial={cluster.trials(id)[0]['id']}")
    expect(page.get_by_text(re.compile("Trial [0-9]+ was created")).first).to_be_visible()


@pytest.mark.full
def test_the_back_button_leads_through_tabs(page, create):
    id = create("tabbed")
    page.goto(f"/det/experiments/{id}/overview")
    page.get_by_role("navigation", name="Parts").get_by_role("link", name="Logs").click()
    expect(page).to_have_url(re.compile("/logs$"))
    page.locator("h1").click()
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("/hyperparameters$"))
    page.go_back()
    expect(page).to_have_url(re.compile("/logs$"))
    page.go_back()
    expect(page).to_have_url(re.compile("/overview$"))


@pytest.mark.full
def test_code_is_searched_and_its_configuration_shown_with_all_defaults(page, create):
    id = create("coded", "print('a needle')\n")
    page.goto(f"/det/experiments/{id}/code")
    page.get_by_label("Search in files").fill("needle")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="run.py:1").click()
    expect(page.get_by_role("region", name="run.py").locator(".here")).to_have_text("print('a needle')")
    # The place that a traceback names.
    page.goto(f"/det/experiments/{id}/code?file=/somewhere/workdir/run.py&at=1")
    expect(page.get_by_role("region", name="run.py").locator(".here .hl-string")).to_have_text("'a needle'")
    page.goto(f"/det/experiments/{id}/code")
    page.get_by_role("group", name="Configuration").get_by_role("button", name="Effective").click()
    expect(page.get_by_role("region", name="effective configuration")).to_contain_text("max_restarts: 0")


def test_a_folder_becomes_an_experiment_that_differs_from_an_earlier_one(page, create, cluster, tmp_path):
    earlier = create("from-before")
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "run.py").write_text("print('from a folder')\n")
    (folder / ".detignore").write_text("*.bin\n")
    (folder / "big.bin").write_text("x")
    (folder / "config.yaml").write_text(
        json.dumps({"name": "from-a-folder", "entrypoint": "python3 run.py", "searcher": {"name": "single"}})
    )
    page.goto("/det/experiments/new")
    page.get_by_label("Folder with the code").set_input_files(folder)
    expect(page.get_by_role("status").filter(has_text="3 files")).to_be_visible()
    area = page.get_by_role("textbox", name="Configuration")
    expect(area).to_have_value(re.compile("from-a-folder"))
    expect(page.get_by_text("searcher.max_length: is required and not set")).to_be_visible()
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()
    area.fill(
        "name: from-a-folder\nentrypoint: python3 run.py\nmax_restarts: 0\nsearcher:\n  name: single\n  "
    )
    area.press("Control+Space")
    expect(page.get_by_role("option", name=re.compile("^max_length"))).to_be_visible()
    area.press_sequentially("met")
    area.press("Enter")
    area.press_sequentially("loss")
    area.press("Enter")
    area.press_sequentially("max_length: 7")
    expect(area).to_have_value(re.compile("  metric: loss\n  max_length: 7$"))
    expect(page.get_by_text("Valid.")).to_be_visible()
    expect(page.get_by_role("region", name="What it will do")).to_contain_text(
        re.compile("Trials.*1.*7.*batches")
    )
    if AXE.exists():
        assert violations(page) == {}
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/det/experiments/\d+/overview"))
    id = int(re.search(r"experiments/(\d+)/", page.url)[1])
    cluster.wait_for_end(id)
    trial = cluster.first_trial(id)
    wait_for(lambda: "from a folder" in cluster.det("trial", "logs", trial).stdout, 60, "its line")
    different = "%20difference%20to%20another%20experiment"
    page.goto(f"/det/experiments/{id}/code?file={different}&with={earlier}")
    expect(page.get_by_role("row", name=re.compile("^name"))).to_contain_text("from-a-folder")
    expect(page.locator(".ln.add").filter(has_text="from a folder")).to_be_visible()


@pytest.mark.full
def test_an_earlier_experiment_gives_its_code_and_configuration(page, create):
    earlier = create("given")
    page.goto(f"/det/new?from={earlier}")
    expect(page.get_by_role("textbox", name="Configuration")).to_have_value(re.compile("name: given"))
    expect(page.get_by_text("Valid.")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(rf"/det/experiments/{earlier + 1}/overview"))
    expect(page.locator(".head")).to_contain_text(f"forked from {earlier}")


@pytest.mark.full
def test_notes_are_written_and_their_html_stays_text(page, create):
    id = create("noted")
    page.goto(f"/det/experiments/{id}/notes")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Notes").fill("**bold** <b id='evil'>x</b> [bad](javascript:alert(1))")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".markdown strong")).to_have_text("bold")
    expect(page.locator(".markdown")).to_contain_text("<b id='evil'>x</b>")
    assert page.locator("#evil").count() == 0
    assert page.locator(".markdown a").count() == 0

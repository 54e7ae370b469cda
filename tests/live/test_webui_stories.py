"""Stories of the web UI in a browser: by the keyboard, with hostile names, as guides say."""

import re

import pytest

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import create as create
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for
from tests.live.webui_lists import REPORTS, SLEEPS
from tests.live.webui_lists import examples as examples
from tests.live.webui_lists import page as page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

pytestmark = MARKS


@pytest.mark.full
def test_the_daily_tasks_by_the_keyboard_alone(page, create, cluster):
    id = create("by-keys", SLEEPS, wait=False)
    page.goto("/det/dashboard")
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Query")).to_be_focused()
    page.keyboard.type("by-keys state:ACTIVE")
    # Its rows, not those of what had been typed up to a moment before.
    expect(page).to_have_url(re.compile("state%3AACTIVE"))
    expect(page.get_by_text("1 found")).to_be_visible()
    expect(page.locator(f'tr[data-id="{id}"] a').first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("j")
    expect(page.locator(f'tr[data-id="{id}"] a').first).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_role("group", name="Selected experiments")).to_contain_text("1 chosen")
    page.keyboard.press("p")
    wait_for(lambda: cluster.experiment(id)["state"] == "STATE_PAUSED", 60, "the pause")
    page.goto(f"/det/experiments?q=id%3A{id}")
    expect(page.locator(f'tr[data-id="{id}"]')).to_contain_text("PAUSED")
    page.keyboard.press("j")
    expect(page.locator(f'tr[data-id="{id}"] a').first).to_be_focused()
    with page.expect_response(re.compile("/activate$")):
        page.keyboard.press("p")
    expect(page.locator(f'tr[data-id="{id}"]')).not_to_contain_text("PAUSED")
    page.keyboard.press(".")
    expect(page.get_by_role("menu")).to_contain_text("Pause")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    page.locator(f'tr[data-id="{id}"] a').first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/det/experiments/{id}/overview"))
    expect(page.get_by_role("button", name="More actions")).to_be_visible()
    page.keyboard.press(".")
    # The menu has the focus, and goes to what is typed.
    expect(page.get_by_role("menu", name="More actions")).to_be_focused()
    page.keyboard.press("k")
    expect(page.get_by_role("menuitem", name="Kill")).to_be_focused()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".head .state")).to_contain_text("CANCELED")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def test_the_browser_leaves_the_same_events_as_the_command(page, create, cluster):
    """Pause and activate, once each way: the stories differ in nothing."""
    by_page, by_command = (create(f"same-{way}", SLEEPS, wait=False) for way in ("page", "command"))
    page.goto(f"/det/experiments/{by_page}/overview")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".head .state")).to_contain_text("PAUSED")
    page.get_by_role("button", name="Activate", exact=True).click()
    wait_for(lambda: cluster.experiment(by_page)["state"] != "STATE_PAUSED", 60, "the start")
    cluster.det("e", "pause", by_command)
    cluster.det("e", "activate", by_command)
    received = []
    for id in (by_page, by_command):
        steps = cluster.get(f"why/experiment/{id}", all="true")["steps"]
        received.append([(step["name"], step["actor"], step["reason"]) for step in steps])
        cluster.det("e", "kill", id)
    assert received[0] == received[1]


@pytest.mark.full
def test_checkpoints_tell_why_they_stay_and_become_models(page, create, cluster):
    id = create("kept", REPORTS, hyperparameters={"lr": 0.25})
    page.goto(f"/det/experiments/{id}/checkpoints")
    expect(page.get_by_text("best and latest of its trial")).to_be_visible()
    page.get_by_label("Latest of each trial").fill("0")
    page.get_by_label("Best of each trial").fill("0")
    expect(page.get_by_role("row", name=re.compile("Goes"))).to_be_visible()
    expect(page.get_by_text("1 of 1 would go")).to_be_visible()
    expect(page.get_by_text("1 trial could no longer be continued")).to_be_visible()
    page.get_by_role("button", name="Reset to the current policy").click()
    expect(page.get_by_text("0 of 1 go", exact=True)).to_be_visible()
    page.get_by_role("row", name=re.compile("Stays")).locator("code").click()
    drawer = page.get_by_role("complementary", name=re.compile("^Checkpoint"))
    expect(drawer).to_contain_text("steps_completed: 1")
    expect(page).to_have_url(re.compile("open="))
    drawer.get_by_role("button", name="Register").click()
    page.get_by_label("Model", exact=True).fill("keeper")
    page.get_by_label("Model", exact=True).press("Enter")
    expect(page.get_by_text("Registered as version 1 of keeper.")).to_be_visible()
    page.goto("/det/models/keeper")
    page.get_by_role("button", name="Version 1", exact=True).click()
    expect(page.get_by_text("get_version(1)")).to_be_visible()
    page.goto(f"/det/experiments/{id}/checkpoints")
    expect(page.get_by_text("a model's version")).to_be_visible()


@pytest.mark.full
def test_what_was_deleted_says_when_and_by_whom(page, create, cluster):
    id = create("gone")
    page.goto(f"/det/experiments/{id}/overview")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("metrics and logs of 1 trial are permanently deleted")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text(f"There is no experiment {id}")).to_be_visible(timeout=60 * SECONDS)
    expect(page.get_by_text("deleted by determined").first).to_be_visible()


@pytest.mark.full
def test_a_slot_is_drained_and_opened_again_by_administrators(page):
    agent = page.locator('table[aria-label="Agents"] td.name button')
    page.goto("/det/clusters")
    agent.click()
    limits = page.get_by_role("region", name=re.compile("^Limits of runs on "))
    expect(limits.get_by_text("no limit: STEADFAST_WORKER_DISK_MIB is not set")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Drain slot 0"))).to_be_disabled()
    page.context.clear_cookies()
    page.goto("/det/dashboard")
    page.get_by_label("User").fill("admin")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    page.goto("/det/clusters")
    agent.click()
    page.get_by_role("button", name=re.compile("^Drain slot 0")).click()
    page.get_by_role("button", name=re.compile("^Enable slot 0")).click()
    expect(page.get_by_role("button", name=re.compile("^Drain slot 0"))).to_be_visible()


@pytest.mark.full
def test_the_queue_is_changed(page, create, cluster):
    ids = [create(f"in-line-{n}", SLEEPS, wait=False, resources={"slots_per_trial": 2}) for n in range(3)]
    page.goto("/det/jobs")
    rows = page.get_by_role("row", name=re.compile("in-line-"))
    expect(rows).to_have_count(3)
    waiting = page.get_by_role("row", name=re.compile(f"in-line-2.*{ids[2]}"))
    expect(waiting).to_contain_text(re.compile("slot"))
    menu = waiting.get_by_role("button", name=f"Actions of in-line-2 ({ids[2]})")
    menu.click()
    page.get_by_role("menuitem", name="Set the weight").click()
    page.get_by_role("spinbutton", name="Weight").fill("3")
    page.get_by_role("button", name="Set the weight").click()

    def weighs(wanted):
        jobs = cluster.get("job-queues")["jobs"]
        return any(job["weight"] == wanted for job in jobs if job["entityId"] == str(ids[2]))

    wait_for(lambda: weighs(3), 60, "the weight")
    page.get_by_role("button", name="Undo").click()
    wait_for(lambda: weighs(1), 60, "the weight from before")
    menu.click()
    page.get_by_role("menuitem", name="Kill").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(rows).to_have_count(2)
    for id in ids[:2]:
        cluster.det("e", "kill", id)


EVIL = '<img src=x onerror="document.title=\'hit\'"><script>document.title="hit"</script>{{7*7}}'


@pytest.mark.full
def test_hostile_names_are_shown_and_nothing_of_them_runs(page, create, cluster):
    labels = [EVIL, *(f"tag-{number}" for number in range(40))]
    name = EVIL + "x" * 200
    id = create(name, f"print({EVIL!r})", description=EVIL, labels=labels, hyperparameters={EVIL: EVIL})
    cluster.api("PATCH", f"experiments/{id}", json={"notes": EVIL})
    cluster.api(
        "POST", "models", json={"name": EVIL.replace("/", "|"), "description": EVIL, "labels": [EVIL]}
    )
    space = cluster.api("POST", "workspaces", json={"name": EVIL[:60]})["workspace"]["id"]
    cluster.api("POST", f"workspaces/{space}/projects", json={"name": EVIL[:60], "description": EVIL})
    failures = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("dialog", lambda dialog: failures.append(dialog.message))
    for path in (
        "/dashboard",
        f"/experiments?q=id%3A{id}&c=id,name,description,tags,{'hp.x'}",
        *(f"/experiments/{id}/{tab}" for tab in ("overview", "code", "logs", "notes", "story", "trials")),
        "/models",
        "/workspaces",
        f"/workspaces/{space}",
        "/jobs",
        "/clusters",
        "/system/events",
    ):
        page.goto(f"/det{path}")
        expect(page.locator("main h1, main h2").first).to_be_visible()
        expect(page.locator(".skeleton")).to_have_count(0)
        assert page.locator('img[src="x"]').count() == 0, path
        assert page.title() != "hit", path
        if not path.startswith("/experiments/"):
            for width in (390, 1280, 1440, 1920):
                page.set_viewport_size({"width": width, "height": 850})
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (path, width)
    page.goto(f"/det/experiments/{id}/overview")
    expect(page.locator("h1")).to_contain_text("<script>")
    assert failures == []


def test_the_quickstart_by_the_letter(page, examples, cluster):
    """What the guide of the web UI tells a new user to look at, named as it names it."""
    id = cluster.create("3_search.yaml", examples, "--config", "name=by-the-letter")
    page.goto("/det/dashboard")
    page.get_by_role("row", name=re.compile("by-the-letter")).get_by_role(
        "link", name="by-the-letter"
    ).click()
    expect(page).to_have_url(re.compile(f"/det/experiments/{id}/overview"))
    parts = page.get_by_role("navigation", name="Parts")
    for tab in ("Overview", "Hyperparameters", "Trials", "Checkpoints", "Code", "Logs", "Notes", "Story"):
        expect(parts.get_by_role("link", name=re.compile(rf"^{tab}( \d+)?$"))).to_be_visible()
    page.get_by_role("button", name="More actions").click()
    for name in ("Fork", "Continue trial", "Search from here", "Stop after this batch", "Kill", "Delete"):
        expect(page.get_by_role("menuitem", name=name)).to_be_visible()
    # What cannot be done says why: this is no single trial, and it may run still.
    expect(page.get_by_role("menuitem", name="Continue trial")).to_contain_text(
        re.compile("still |needs a single trial")
    )
    page.keyboard.press("Escape")
    cluster.wait_for_end(id)
    expect(page.locator(".head .state")).to_contain_text("COMPLETED")
    figures = page.get_by_role("group", name="The experiment in figures")
    for words in ("Progress", "Best trial", "Ended after", "Held", "Cost", "8 of 8 trials", "restarts 0 of"):
        expect(figures).to_contain_text(words)
    expect(page.get_by_role("heading", name="Rungs")).to_be_visible()
    parts.get_by_role("link", name="Hyperparameters").click()
    expect(page.get_by_role("heading", name="Parallel coordinates")).to_be_visible()
    for name in ("Learning curves", "Pairs"):
        expect(page.get_by_role("button", name=name)).to_be_visible()


@pytest.mark.full
def test_tags_are_edited_where_they_stand_and_acts_found_by_tab(page, create, cluster):
    id = create("to-be-tagged")
    page.goto(f"/det/experiments/{id}/overview")
    page.get_by_role("button", name="Tag", exact=True).click()
    panel = page.get_by_role("dialog", name="Edit tags")
    panel.get_by_label("New tag").fill("nightly")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("button", name="Remove nightly")).to_be_visible()
    wait_for(lambda: cluster.experiment(id)["labels"] == ["nightly"], 60, "the tag")
    panel.get_by_role("button", name="Remove nightly").click()
    wait_for(lambda: cluster.experiment(id)["labels"] == [], 60, "the tag to be gone")
    page.keyboard.press("Escape")
    page.goto("/det/dashboard")
    expect(page).to_have_title("Dashboard · Steadfast")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search or jump to").get_by_role("combobox")).to_be_focused()
    page.keyboard.type("to-be-tagged")
    expect(page.get_by_role("option", name=re.compile("to-be-tagged"))).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("option", name=re.compile("^Kill"))).to_contain_text("has ended")
    page.keyboard.type("archive")
    page.keyboard.press("Enter")
    wait_for(lambda: cluster.experiment(id)["archived"], 60, "the archive")

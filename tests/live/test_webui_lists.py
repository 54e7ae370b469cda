"""Lists of the web UI in a browser: queries, columns, actions, the same for everybody."""

import re
from pathlib import Path

import pytest

from tests.fixtures.browser import AXE, MARKS, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import create as create
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for
from tests.live.webui_lists import REPORTS, SLEEPS, names
from tests.live.webui_lists import page as page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

pytestmark = MARKS


@pytest.mark.full
def test_a_query_finds_sorts_and_stays_in_the_address(page, create):
    for name, lr in (("query-slow", 0.1), ("query-fast", 0.3), ("other", 0.2)):
        create(name, REPORTS, hyperparameters={"lr": lr}, labels=["sweep"] if lr > 0.15 else [])
    page.goto("/det/experiments")
    query = page.get_by_label("Query")
    query.fill("name:query hp.lr<0.5 metric.accuracy>0 state:COMPLETED")
    expect(page.get_by_text("2 found")).to_be_visible()
    page.get_by_role("columnheader", name=re.compile("Best")).get_by_role("button").click()
    expect(page).to_have_url(re.compile("s=searcherMetricsVal"))
    wait_for(lambda: names(page) == ["query-slow", "query-fast"], 60, "the order")
    page.get_by_role("columnheader", name=re.compile("Best")).get_by_role("button").click()
    wait_for(lambda: names(page) == ["query-fast", "query-slow"], 60, "the other order")
    # The form says the same, and what is changed in it is seen in the text.
    page.get_by_role("button", name=re.compile("^Filter")).click()
    expect(page.get_by_label("Column", exact=True)).to_have_count(4)
    page.get_by_role("button", name="Remove condition on name").click()
    expect(query).to_have_value("hp.lr<0.5 metric.accuracy>0 state:COMPLETED")
    query.fill("tag:sweep OR name:slow")
    expect(page.get_by_label("Conditions to match")).to_have_value("or")
    # What is typed is asked for, and put into the address, a moment later.
    expect(page).to_have_url(re.compile("name%3Aslow"))
    expect(page.get_by_text("3 found")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Query")).to_have_value("tag:sweep OR name:slow")
    expect(page.get_by_text("3 found")).to_be_visible()
    # A name leads to its page, and back to the query, without loading the web UI anew.
    page.evaluate("window.stays = true")
    page.get_by_role("link", name="query-fast").click()
    expect(page).to_have_url(re.compile("/overview$"))
    page.go_back()
    expect(page.get_by_text("3 found")).to_be_visible()
    assert page.evaluate("window.stays")
    page.get_by_label("Query").fill("(tag:sweep")
    expect(page.get_by_text("a parenthesis is not closed")).to_be_visible()
    page.get_by_label("Query").fill("colour:red")
    expect(page.get_by_text("there is no column 'colour'")).to_be_visible()


@pytest.mark.full
def test_columns_are_picked_and_exported(page, create):
    create("picked", REPORTS, hyperparameters={"lr": 0.25})
    page.goto("/det/experiments?q=picked")
    page.get_by_role("button", name="Columns", exact=True).click()
    page.get_by_role("checkbox", name="lr", exact=True).check()
    page.get_by_label("Find a column").fill("accuracy.max")
    page.get_by_role("checkbox", name="accuracy.max", exact=True).check()
    page.keyboard.press("Escape")
    row = page.locator("tbody tr[data-id]")
    expect(row).to_contain_text("0.25")
    expect(row).to_contain_text("0.5")
    page.get_by_role("button", name="View options").click()
    page.get_by_role("menuitem", name="Heat: lr").click()
    expect(page).to_have_url(re.compile("heat=hp.lr"))
    expect(page.get_by_text("Heat: lr")).to_be_visible()
    handle = page.get_by_role("separator", name="Width of Name")
    before = int(handle.get_attribute("aria-valuenow"))
    handle.focus()
    page.keyboard.press("ArrowRight")
    expect(handle).to_have_attribute("aria-valuenow", str(before + 16))
    with page.expect_download() as download:
        page.get_by_role("button", name="View options").click()
        page.get_by_role("menuitem", name="Export CSV").click()
    head, line = Path(download.value.path()).read_text().splitlines()
    assert "hp.lr" in head
    assert '"picked"' in line
    assert line.endswith("0.25,0.5")
    # As it is without any column picked, too.
    page.goto("/det/experiments?q=picked")
    page.get_by_role("button", name="View options").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export CSV").click()
    assert '"picked"' in Path(download.value.path()).read_text()


@pytest.mark.full
def test_a_bulk_action_reports_each_refusal(page, create):
    create("bulk-over")
    open_id = create("bulk-open", SLEEPS, wait=False)
    page.goto("/det/experiments?q=bulk")
    expect(page.get_by_text("2 found")).to_be_visible()
    page.get_by_label("Select all that match").click()
    chosen = page.get_by_role("group", name="Selected experiments")
    chosen.get_by_role("button", name="Archive 1 of 2").click()
    expect(page.get_by_text("Archived 1 of 2.")).to_be_visible()
    expect(page.get_by_text(re.compile(f"^{open_id}: "))).to_be_visible()
    page.get_by_role("button", name="Clear selection").click()
    page.get_by_label(f"Choose experiment {open_id}").click()
    chosen.get_by_role("button", name="Kill").click()
    expect(page.get_by_role("dialog")).to_contain_text("Work since their last checkpoint is lost")
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(page.get_by_text("Killed 1 of 1.")).to_be_visible()
    expect(page.locator(f'tr[data-id="{open_id}"]')).to_contain_text("CANCELED")


@pytest.mark.full
def test_projects_group_experiments(page, create, cluster):
    id = create("to-be-moved")
    page.goto("/det/workspaces")
    page.get_by_role("button", name="New workspace").click()
    page.get_by_label("Name").fill("vision")
    page.get_by_label("Name").press("Enter")
    page.get_by_role("link", name="vision").click()
    page.get_by_role("button", name="New project").click()
    page.get_by_label("Name").fill("digits")
    page.get_by_label("Name").press("Enter")
    expect(page.get_by_role("link", name="digits")).to_be_visible()
    page.goto(f"/det/experiments/{id}/overview")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Move to a project").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Find a project").fill("vision / dig")
    expect(dialog.get_by_role("button", name="Uncategorized")).to_have_count(0)
    dialog.get_by_role("button", name="vision / digits").click()
    wait_for(lambda: cluster.experiment(id)["projectName"] == "digits", 60, "the move")
    page.get_by_role("button", name="Undo").click()
    wait_for(lambda: cluster.experiment(id)["projectName"] == "Uncategorized", 60, "the way back")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Move to a project").click()
    dialog.get_by_role("button", name="vision / digits").click()
    wait_for(lambda: cluster.experiment(id)["projectName"] == "digits", 60, "the move")
    page.goto("/det/workspaces")
    page.get_by_role("link", name="vision").click()
    page.get_by_role("link", name="digits").click()
    expect(page.locator(f'tr[data-id="{id}"]')).to_be_visible()


def test_a_failed_distributed_trial_is_explained_one_click_from_the_dashboard(page, create):
    script = "import sys\nprint('[rank=1] ERROR: the shard is missing', flush=True)\nsys.exit(3)\n"
    create("fails-far", script, resources={"slots_per_trial": 2})
    page.goto("/det/dashboard")
    item = page.locator(".card", has_text="Failed in the last day").locator("li", has_text="fails-far")
    expect(item).to_contain_text("the shard is missing")
    item.get_by_role("link", name="log").click()
    expect(page.get_by_text("the shard is missing").first).to_be_visible()


CONTENT = """
grid => [
  [...grid.querySelectorAll("th")].map(
    one => [one.innerText.trim(), one.getAttribute("aria-sort"), one.style.width]),
  [...grid.querySelectorAll("tr[data-id]")].map(
    one => [one.dataset.id, one.style.height, ...[...one.cells].map(cell => cell.innerText.trim())]),
]
"""
"""What a person reads off the list: columns with their order and width, rows with their height and texts."""


@pytest.mark.full
def test_an_address_shows_a_colleague_the_same(page, browser, cluster, create):
    id = create("shared-view", REPORTS, hyperparameters={"lr": 0.25})
    address = "/det/experiments?q=name%3Ashared-view&c=id,name,hp.lr&s=hp.lr:desc,id:asc&h=compact&p=1"
    page.goto(address)
    expect(page.locator("tr[data-id]")).to_contain_text("0.25")
    other = browser.new_context(base_url=cluster.address, viewport={"width": 1280, "height": 850})
    other.set_default_timeout(60 * SECONDS)
    colleague = other.new_page()
    colleague.goto(address)
    colleague.get_by_role("button", name="Sign in").click()
    expect(colleague.locator("tr[data-id]")).to_contain_text("0.25")
    assert colleague.url.partition("?")[2] == page.url.partition("?")[2]
    theirs, ours = (viewer.get_by_role("table", name="Experiments") for viewer in (colleague, page))
    wait_for(lambda: theirs.evaluate(CONTENT) == ours.evaluate(CONTENT), 60, "both to see the same table")
    head, rows = ours.evaluate(CONTENT)
    assert [(title.replace("\n", ""), order) for title, order, _ in head[1:-1]] == [
        ("ID2", "ascending"),
        ("Name", None),
        ("lr1", "descending"),
    ]
    assert [row[3:6] for row in rows] == [[str(id), "shared-view", "0.25"]]
    other.close()


PAGES = (
    "/dashboard",
    "/experiments",
    "/experiments/{id}/overview",
    "/experiments/{id}/checkpoints",
    "/experiments/{id}/code",
    "/experiments/{id}/code?file=%20difference%20to%20another%20experiment&with={other}",
    "/experiments/{id}/notes",
    "/experiments/{id}/story",
    "/experiments/99999/overview",
    "/workspaces",
    "/workspaces/1",
    "/projects/1/experiments",
    "/models",
    "/jobs",
    "/resourcepool/default",
    "/clusters",
    "/tasks",
    "/settings",
    "/system/events",
)


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_every_list(page, create, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make setup")
    other = create(f"beside-axe-{scheme}")
    id = create(f"axe-{scheme}", REPORTS, hyperparameters={"lr": 0.25}, labels=["one"])
    page.emulate_media(color_scheme=scheme)
    faults = {}

    def look(where, **rules):
        expect(page.locator("main h1, main h2").first).to_be_visible()
        expect(page.locator(".skeleton")).to_have_count(0)
        page.evaluate(AXE.read_text())
        # Whoever comes to a guard of an open menu is sent on at once: it is there for that.
        part = {"exclude": ["[data-base-ui-focus-guard]"]}
        options = {"rules": {rule: {"enabled": enabled} for rule, enabled in rules.items()}}
        broken = page.evaluate(
            "([part, options]) => axe.run(part, options).then(found => found.violations)", [part, options]
        )
        faults.update(
            {
                f"{where} {violation['id']}": [node["html"][:120] for node in violation["nodes"][:3]]
                for violation in broken
            }
        )

    for path in PAGES:
        page.goto(f"/det{path.format(id=id, other=other)}")
        look(path)
    page.goto("/det/experiments?q=state:COMPLETED")
    page.get_by_role("button", name=re.compile("^Filter")).click()
    look("filter")
    page.keyboard.press("Escape")
    page.get_by_label("Select all that match").click()
    look("chosen ones")
    page.get_by_role("button", name="Columns", exact=True).click()
    look("columns")
    page.keyboard.press("Escape")
    # What closes keeps its guards of the focus until it has faded.
    expect(page.locator(".pop-box")).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Actions of experiment")).first.click()
    expect(page.get_by_role("menuitem").first).to_be_visible()
    # An open menu stands beside the landmarks of its page, as dialogs do, which axe knows of them alone.
    look("actions", region=False)
    page.goto(f"/det/experiments/{id}/story")
    page.locator("summary").first.click()
    look("an event")
    page.goto("/det/dashboard")
    page.keyboard.press("?")
    look("keys")
    assert faults == {}

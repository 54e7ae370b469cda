"""The web UI in a browser, as a person uses it (web UI spec, section 5)."""

import re
import shutil
from pathlib import Path

import pytest

from tests.fixtures.browser import AXE, MARKS, SCHEMES, SECONDS, show, violations
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import create as create
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
EXAMPLES = Path(__file__).parents[2] / "examples" / "core_api"
expect = playwright.expect
pytestmark = MARKS


@pytest.fixture
def page(cluster, signed_in):
    """On the dashboard."""
    expect.set_options(timeout=60 * SECONDS)
    page = signed_in(cluster)
    page.goto("/")
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    return page


@pytest.fixture
def examples(tmp_path):
    return shutil.copytree(EXAMPLES, tmp_path / "core_api")


LONG = """
name: takes-long
entrypoint: python3 3_search.py
hyperparameters: {growth: 1}
searcher: {name: single, metric: weight, max_length: 5000}
"""


MOST_KB = 200
"""Of the first page as it is sent, until its rows are there."""
NOTE_ROWS = """
new MutationObserver((_, watch) => {
  if (!document.querySelector("tr[data-id]")) return;
  window.rowsAt = performance.now();
  watch.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
SENT_UNTIL_ROWS = """
() => ["navigation", "resource"]
  .flatMap(kind => performance.getEntriesByType(kind))
  .filter(one => one.responseEnd <= window.rowsAt)
  .map(one => [one.transferSize / 1000, one.name.slice(0, 90)])
"""
HAS_OVERLAYS = "performance.getEntriesByType('resource').some(one => one.name.includes('/overlay-'))"


def test_the_first_page_is_small_until_its_rows_are_there(cluster, create, signed_in):
    create("small")
    page = signed_in(cluster)
    page.add_init_script(NOTE_ROWS)
    page.goto("/det/dashboard")
    page.locator("tr[data-id]").first.wait_for()
    sent = page.evaluate(SENT_UNTIL_ROWS)
    assert sum(size for size, _ in sent) < MOST_KB, sorted(sent)
    # Menus, dialogs and tooltips follow by themselves.
    wait_for(lambda: page.evaluate(HAS_OVERLAYS), 60, "the overlays")


def test_whoever_signs_in_comes_to_where_they_wanted_to_go(page):
    page.context.clear_cookies()
    page.goto("/experiments")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/det/experiments$"))
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()


@pytest.mark.full
def test_pause_activate_fork_and_kill_as_from_the_command(cluster, page, examples):
    (examples / "long.yaml").write_text(LONG)
    id = cluster.create("long.yaml", examples)
    page.goto(f"/det/experiments/{id}/overview")
    state = page.locator(".head .state")
    expect(state).to_contain_text("RUNNING")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(state).to_contain_text("PAUSED")
    # One thing is first: what comes next.
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    page.locator("h1").click()
    page.keyboard.press("p")
    wait_for(lambda: cluster.experiment(id)["state"] != "STATE_PAUSED", 60, "the start")
    page.get_by_role("button", name="Fork").click()
    page.get_by_role("dialog").get_by_role("button", name="Fork").click()
    expect(page).to_have_url(re.compile(f"/det/experiments/{id + 1}/overview"))
    page.get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menuitem", name="Delete")).to_contain_text("still ")
    page.get_by_role("menuitem", name="Kill").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(page.locator(".head .state")).to_contain_text("CANCELED")
    # What is killed is what the page shows, not what it showed before.
    assert cluster.experiment(id)["endTime"] is None
    cluster.api("POST", f"experiments/{id}/kill")
    output = cluster.det("why", "experiment", id + 1).stdout
    assert "killed by determined" in output
    page.get_by_role("link", name="Story").click()
    expect(page.get_by_text("killed by determined").first).to_be_visible()


@pytest.mark.full
def test_a_single_trial_is_shown_on_the_page_of_its_experiment(cluster, page, examples):
    (examples / "short.yaml").write_text(LONG.replace("5000", "50"))
    id = cluster.create("short.yaml", examples)
    cluster.wait_for_end(id)
    page.goto(f"/det/experiments/{id}/overview")
    page.get_by_role("link", name="Hyperparameters", exact=True).click()
    expect(
        page.get_by_role("table", name="Hyperparameters").get_by_role("row", name="growth")
    ).to_contain_text("1")
    page.get_by_role("link", name="Metrics", exact=True).click()
    expect(page.get_by_role("table", name="Workloads")).to_contain_text("50")
    expect(page.get_by_role("link", name="Profiler", exact=True)).to_be_visible()


LOG = """
import sys
for rank in (0, 1):
    for level in ("INFO", "ERROR"):
        print(f"[rank={rank}] {level}: line of {rank} <b>bold</b>", flush=True)
sys.exit(3)
"""
FAILS = """
name: it-fails
entrypoint: python3 fail.py
max_restarts: 0
searcher: {name: single, metric: x, max_length: 1}
resources: {slots_per_trial: 1}
"""


def test_from_the_dashboard_to_the_line_that_explains_a_failure(cluster, page, tmp_path):
    (tmp_path / "fail.py").write_text(LOG)
    (tmp_path / "config.yaml").write_text(FAILS)
    cluster.wait_for_end(cluster.create("config.yaml", tmp_path))
    card = page.locator(".card", has_text="Failed in the last day")
    card.locator("li", has_text="it-fails").get_by_role("link", name="log").click()
    lines = page.locator(".log .line")
    # Before what the script prints: where it runs.
    expect(lines).to_have_count(5)
    expect(lines.nth(1)).to_contain_text("line of 0 <b>bold</b>")
    page.get_by_label("Level").select_option("ERROR")
    expect(lines).to_have_count(2)
    page.get_by_label("Ranks").select_option("1")
    expect(lines).to_have_count(1)
    # The link is the state.
    page.reload()
    expect(lines).to_have_count(1)
    assert "level=ERROR" in page.url
    assert "rank=1" in page.url


PLACES = (("e", "Experiments"), ("c", "Agents"), ("q", "Queue"), ("m", "Models"))


@pytest.mark.full
def test_who_goes_elsewhere_asks_again_only_for_what_has_changed(cluster, page, examples):
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    for _ in range(2):
        for key, heading in PLACES:
            page.keyboard.press("g")
            page.keyboard.press(key)
            expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("e")
    cluster.create("1_metrics.yaml", examples, "--config", "name=told-all-the-same")
    expect(page.get_by_role("row", name=re.compile("told-all-the-same"))).to_be_visible()
    # The first thing that the channel says may have it asked for once.
    assert len([url for url in urls if url.endswith("/api/v1/me")]) <= 1


def test_keys_lead_to_places(page):
    for key, heading in PLACES:
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()


@pytest.mark.full
def test_the_palette_leads_to_what_has_a_name_and_titles_say_where_one_is(cluster, page, examples):
    id = cluster.create("1_metrics.yaml", examples, "--config", "name=by-its-name")
    expect(page).to_have_title("Dashboard · Steadfast")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search or jump to")
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("by-its")
    expect(palette.get_by_role("option", name=re.compile("by-its-name"))).to_be_visible()
    if AXE.exists():
        assert violations(page) == {}
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/det/experiments/{id}/overview"))
    page.keyboard.press("Control+k")
    page.keyboard.type("Queue")
    expect(palette.get_by_role("option", name=re.compile("^Queue"))).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_title("Queue · Steadfast")
    page.goto("/det/experimetns")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("link", name="Experiments")).to_be_visible()
    page.goto("/det/settings/tokenz")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("link", name="Settings")).to_be_visible()


def held_back(page, pattern):
    """Hold back requests. Returns a function that waits for the next and returns its route."""
    routes = []
    page.route(pattern, lambda route: routes.append(route))

    def held():
        wait_for(lambda: page.wait_for_timeout(50) or routes, 60, f"a request for {pattern.pattern}")
        return routes.pop(0)

    return held


@pytest.mark.full
def test_enter_waits_for_what_fits_the_text(cluster, page, examples):
    """The list may still be that of an earlier text: Enter opened its first row."""
    id = cluster.create("1_metrics.yaml", examples, "--config", "name=waits-its-turn")
    expect(page).to_have_title("Dashboard · Steadfast")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search or jump to")
    expect(palette.get_by_role("option", name=re.compile("^Queue"))).to_be_visible()
    held = held_back(page, re.compile("experiments-search"))
    page.keyboard.type("waits-its")
    page.keyboard.press("Enter")
    request = held()
    expect(page).to_have_title("Dashboard · Steadfast")
    request.continue_()
    page.unroute_all()
    expect(page).to_have_url(re.compile(f"/det/experiments/{id}/overview"))


@pytest.mark.full
def test_what_is_typed_before_the_palette_is_there_is_not_lost(page):
    """It went to the page, and Enter opened the first of all pages."""
    held = held_back(page, re.compile(r"/palette[^/]*\.js$"))
    # From the beginning, since a page that rests fetches it beforehand.
    page.reload()
    expect(page).to_have_title("Dashboard · Steadfast")
    page.keyboard.press("Control+k")
    page.keyboard.type("gq")
    request = held()
    page.keyboard.type("ueue")
    expect(page).to_have_title("Dashboard · Steadfast")
    request.continue_()
    field = page.get_by_role("dialog", name="Search or jump to").get_by_role("combobox")
    expect(field).to_have_value("gqueue")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    for name in ("Queue", "Experiments", "Queue"):
        page.keyboard.press("Control+k")
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        expect(page).to_have_title(f"{name} · Steadfast")


@pytest.mark.full
def test_a_palette_that_does_not_come_takes_no_letters_for_good(page):
    """While it was awaited all letters went to it, also those for a field."""
    expect(page).to_have_title("Dashboard · Steadfast")
    palette = re.compile(r"/palette[^/]*\.js$")
    held = held_back(page, palette)
    for give_up in (lambda: page.keyboard.press("Escape"), lambda: page.locator("h1").click()):
        page.keyboard.press("Control+k")
        page.keyboard.type("x")
        give_up()
        page.keyboard.type("gq")
        expect(page).to_have_title("Queue · Steadfast")
        page.keyboard.type("gd")
        expect(page).to_have_title("Dashboard · Steadfast")
    page.keyboard.press("Control+k")
    page.route(palette, lambda route: route.abort())
    held().abort()
    expect(page.get_by_role("alert")).to_contain_text("could not be shown")
    page.keyboard.type("gq")
    expect(page).to_have_title("Queue · Steadfast")


@pytest.mark.full
def test_what_was_done_from_a_list_is_taken_back(cluster, page, examples):
    (examples / "long.yaml").write_text(LONG.replace("takes-long", "taken-back"))
    id = cluster.create("long.yaml", examples)
    page.goto("/det/experiments?q=taken-back")
    page.get_by_role("button", name=f"Actions of experiment {id}").click()
    page.get_by_role("menuitem", name="Pause").click()
    wait_for(lambda: cluster.experiment(id)["state"] == "STATE_PAUSED", 60, "the pause")
    page.get_by_role("button", name="Undo").click()
    wait_for(lambda: cluster.experiment(id)["state"] != "STATE_PAUSED", 60, "the start")
    page.get_by_role("button", name=f"Actions of experiment {id}").click()
    expect(page.get_by_role("menuitem", name="Archive")).to_contain_text("still ")
    page.keyboard.press("Escape")
    cluster.api("POST", f"experiments/{id}/kill")


NOTE_LATE_OBSERVERS = """
const targets = new Map();
window.late = [];
window.ResizeObserver = class extends ResizeObserver {
  observe(element, ...rest) { targets.set(this, element); super.observe(element, ...rest); }
  disconnect() { targets.delete(this); super.disconnect(); }
};
new MutationObserver(() => {
  for (const element of targets.values())
    if (element.matches(".drawing") && !element.isConnected) window.late.push(element.ariaLabel);
}).observe(document, { childList: true, subtree: true });
"""


@pytest.mark.full
def test_plots_that_left_the_view_are_drawn_no_more(cluster, page, examples):
    """Between a canvas's end and that of its observers one of them could report: it drew on nothing."""
    id = cluster.create("3_search.yaml", examples)
    cluster.wait_for_end(id)
    page.add_init_script(NOTE_LATE_OBSERVERS)
    page.goto(f"/det/experiments/{id}/hyperparameters")
    # It is taken out of the page when it leaves the view.
    plots = page.locator(".place .drawing")
    expect(plots).to_have_count(1)
    page.set_viewport_size({"width": 390, "height": 300})
    expect(plots).to_have_count(0)
    assert page.evaluate("window.late") == []


PAGES = (
    "/dashboard",
    "/experiments",
    "/experiments/{id}/overview",
    "/experiments/{id}/hyperparameters",
    "/experiments/{id}/trials",
    "/experiments/{id}/checkpoints",
    "/experiments/{id}/code",
    "/experiments/{id}/logs",
    "/experiments/{id}/notes",
    "/experiments/{id}/story",
    "/experiments/{id}/trials/{trial}/overview",
    "/experiments/{id}/trials/{trial}/metrics",
    "/experiments/{id}/trials/{trial}/profiler",
    "/clusters",
    "/jobs",
    "/models",
    "/workspaces",
    "/workspaces/1",
    "/new",
    "/tasks",
    "/settings",
    "/settings/appearance",
    "/settings/keys",
    "/settings/sessions",
    "/settings/tokens",
    "/settings/users",
    "/settings/groups",
    "/settings/quotas",
    "/experiments/new",
    "/experiments/compare?e={id}",
    "/experiments/{id}/hyperparameters?v=pairs&k=c",
    "/system/events",
    "/system/events?view=health",
    "/system/audit",
    "/system/components",
    "/nothing/is/here",
)
CUT_NUMBERS = """
[...document.querySelectorAll("td.num")]
  .filter(cell => cell.scrollWidth > cell.clientWidth)
  .map(cell => cell.textContent)
"""
"""Numbers that end in an ellipsis, which read as others."""


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
def test_everybody_can_use_every_page(cluster, page, examples, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make setup")
    id = cluster.create("3_search.yaml", examples)
    cluster.wait_for_end(id)
    trial = cluster.first_trial(id)
    page.emulate_media(color_scheme=scheme)
    faults = {}
    for path in PAGES:
        show(page, path.format(id=id, trial=trial))
        page.wait_for_load_state("load")
        assert page.evaluate(CUT_NUMBERS) == [], path
        page.evaluate(AXE.read_text())
        broken = page.evaluate("axe.run().then(found => found.violations)")
        faults |= {
            f"{path} {violation['id']}": [node["html"][:120] for node in violation["nodes"][:3]]
            for violation in broken
        }
    assert faults == {}

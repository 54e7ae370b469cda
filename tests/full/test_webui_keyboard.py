"""Every page with the keyboard alone: the focus is seen wherever it goes, and Escape closes what opened."""

import re
import shutil

import pytest

from tests.fixtures.browser import MARKS, SECONDS, show
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.live.test_webui import EXAMPLES, PAGES

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS
MOST_STOPS = 250

WALK = """
() => {
  const looks = (one) => {
    const found = [];
    for (let at = one, depth = 0; at && depth < 4; at = at.parentElement, depth += 1) {
      const style = getComputedStyle(at);
      const outline = style.outlineStyle === "none" ? "" : `${style.outlineWidth} ${style.outlineColor}`;
      found.push([outline, style.boxShadow, style.borderColor, style.backgroundColor].join(";"));
    }
    return found.join("|");
  };
  const words = (one) => one.getAttribute("aria-label") || one.title || one.textContent || one.tagName;
  const name = (one) => words(one).trim().slice(0, 40);
  const faults = [];
  const before = window.walked;
  const one = document.activeElement;
  // Within a date, Tab goes from part to part, and to a button, which the browser shows itself.
  const left = before?.one.isConnected && before.one !== one;
  if (left && looks(before.one) === before.looks) faults.push(`not seen: ${before.name}`);
  if (one === document.body) return { ended: true, faults };
  const box = one.getBoundingClientRect();
  const across = box.width > 0 && box.right > 0 && box.left < innerWidth;
  const down = box.height > 0 && box.bottom > 0 && box.top < innerHeight;
  if (!across || !down) faults.push(`out of view: ${name(one)}`);
  if (before?.one !== one) window.walked = { one, looks: looks(one), name: name(one) };
  return { ended: false, faults };
}
"""
"""Whether the element that had the focus before looks otherwise now, and the one that has it is in view."""


@pytest.fixture
def page(cluster, signed_in):
    page = signed_in(cluster)
    expect.set_options(timeout=60 * SECONDS)
    # What moves while the focus comes would look otherwise by itself.
    page.emulate_media(reduced_motion="reduce")
    return page


@pytest.fixture(scope="module")
def search(shared_cluster, tmp_path_factory):
    """A search that has ended, and one of its trials."""
    folder = shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("search") / "core_api")
    id = shared_cluster.create("3_search.yaml", folder)
    shared_cluster.wait_for_end(id)
    return id, shared_cluster.first_trial(id)


def walk(page):
    """What is wrong with where Tab leads to, from the page's beginning to its end."""
    faults = []
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        step = page.evaluate(WALK)
        faults += step["faults"]
        if step["ended"]:
            return faults
    return [*faults, f"Tab does not come to an end in {MOST_STOPS} steps"]


def test_tab_leads_through_every_page_and_shows_where_it_is(page, search):
    id, trial = search
    faults_by_path = {}
    for path in PAGES:
        show(page, path.format(id=id, trial=trial))
        if faults := walk(page):
            faults_by_path[path] = faults
    assert faults_by_path == {}


FEW_STOPS = 60
"""Of which the shell of the page has eighteen, and an experiment's head and tabs fourteen."""
TABLES = (
    "/experiments",
    "/experiments/{id}/overview",
    "/experiments/{id}/trials",
    "/experiments/{id}/checkpoints",
)
WHERE = """
() => {
  const words = (one) => one.getAttribute("aria-label") || one.title || one.textContent;
  const rows = [...document.querySelectorAll(".trial-list li:has(.pick)")];
  const at = rows.indexOf(document.activeElement.closest("li"));
  const controls = [...document.querySelectorAll(".trial-list li :is(a, button):not(:disabled)")];
  return { at, name: words(document.activeElement), rows: rows.length, names: controls.map(words) };
}
"""


@pytest.mark.parametrize("path", TABLES)
def test_rows_are_one_stop_of_tab_however_many_they_are(page, search, path):
    show(page, path.format(id=search[0], trial=search[1]))
    expect(page.locator(":is(tr[data-row], .trial-list li)").first).to_be_visible()
    stops = 0
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement !== document.body"):
        stops += 1
        assert stops < FEW_STOPS
        page.keyboard.press("Tab")
    controls = page.locator(":is(a[href], button, input, select):not(:disabled)").count()
    assert stops < controls, "more of them are reached with the arrow keys"


def test_arrow_keys_reach_every_control_of_every_row(page, search):
    show(page, f"/experiments/{search[0]}/overview")
    expect(page.locator(".trial-list .pick").nth(1)).to_be_visible()
    page.get_by_label("Find trials").focus()
    page.keyboard.press("Tab")
    start = page.evaluate(WHERE)
    assert (start["at"], start["rows"] > 1) == (0, True)
    reached = []
    for row in range(start["rows"]):
        page.keyboard.press("Home")
        before = None
        while (now := page.evaluate(WHERE))["name"] != before:
            assert now["at"] == row
            reached.append(before := now["name"])
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
    assert sorted(reached) == sorted(start["names"])
    page.keyboard.press("Tab")
    assert page.evaluate(WHERE)["at"] == -1, "Tab leads on, to what comes after the list"


OPENED = (
    ("/experiments", "Filter"),
    ("/experiments", "Group"),
    ("/experiments", "Columns"),
    ("/experiments", "Save view"),
    ("/experiments", "Actions of experiment"),
    ("/experiments/{id}/overview", "More actions"),
    ("/experiments/{id}/overview", "Fork"),
    ("/experiments/{id}/overview", "^Tag"),
    ("/experiments/{id}/overview", "Options of weight"),
    ("/experiments/{id}/overview", "More chart options"),
    ("/experiments/{id}/hyperparameters", "Axes and ranges"),
    ("/experiments/compare?e={id}", "Add trials"),
    ("/clusters", "More"),
    ("/models", "New model"),
    ("/tasks", "New notebook"),
    ("/workspaces/1", "New project"),
    ("/settings/tokens", "New API token"),
)
OVER_THE_PAGE = "[role=dialog]:visible, [role=menu]:visible"


@pytest.mark.parametrize(("path", "name"), OPENED)
def test_escape_closes_what_opened_and_gives_the_focus_back(page, search, path, name):
    show(page, path.format(id=search[0]))
    opener = page.locator("main").get_by_role("button", name=re.compile(name)).first
    opener.focus()
    page.keyboard.press("Enter")
    over = page.locator(OVER_THE_PAGE)
    expect(over).to_have_count(1)
    expect(page.locator("[role=dialog]:focus-within, [role=menu]:focus-within")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(over).to_have_count(0)
    expect(opener).to_be_focused()


def test_the_menu_of_a_row_gives_the_focus_back_to_the_row(page, search):
    show(page, "/experiments")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.keyboard.press("j")
    link = page.locator("tr[data-row]").first.get_by_role("link").first
    expect(link).to_be_focused()
    page.keyboard.press(".")
    expect(page.get_by_role("menu")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/experiments/\d+/overview"))


def test_enter_opens_the_details_of_a_checkpoint(page, search):
    show(page, f"/experiments/{search[0]}/checkpoints")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".drawer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".drawer")).to_have_count(0)


CUT_LINES = """
under => (under.scrollHeight - under.clientHeight) / parseFloat(getComputedStyle(under).lineHeight)
"""


def test_every_line_of_a_long_configuration_is_drawn(page, search):
    """Below what the window shows, text was typed and not seen."""
    show(page, f"/experiments/new?from={search[0]}")
    field = page.get_by_role("textbox", name="Configuration")
    expect(field).to_have_value(re.compile("^name: "))
    field.focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n#" * 80 + "\n# the last")
    drawn = page.locator(".editor .under")
    expect(drawn).to_contain_text("# the last")
    assert drawn.evaluate(CUT_LINES) < 2, "all but an empty one at the end"
    last = drawn.locator("span", has_text="# the last").last
    page.keyboard.press("Control+End")
    expect(last).to_be_in_viewport()
    # What can be written there is offered in sight, too.
    page.keyboard.insert_text("\n")
    page.keyboard.press("Control+Space")
    offered = page.get_by_role("listbox", name="Suggestions")
    expect(offered.get_by_role("option", selected=True)).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    # It is checked while one types: let that come to its end.
    expect(page.locator(".verdict .good")).to_be_visible()

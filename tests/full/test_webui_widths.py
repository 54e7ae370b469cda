"""Tables on a small and on a large screen: no column is out of sight, and no heading is cut without need."""

import pytest

from tests.fixtures.browser import MARKS, SECONDS, show
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import create as create
from tests.fixtures.browser import signed_in as signed_in

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS

METRIC = "validation_accuracy"
REPORTS = f"""
import determined as det
with det.core.init() as core:
    core.train.report_validation_metrics(steps_completed=1, metrics={{{METRIC!r}: -0.0034567}})
"""
LARGE = {"resources": {"slots_per_trial": 64}}
"""It waits for ever, and says why in a long sentence."""
LISTS = {
    "dashboard": "Recent experiments",
    "experiments": "Experiments",
    "jobs": "Waiting jobs",
    "clusters": "Agents",
}
HEADS = "thead th[data-column], thead th[data-column] span"
CUT = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"

RANKS = """
import sys
for rank in (0, 1):
    for level in ("INFO", "ERROR"):
        print(f"[rank={rank}] {level}: line of {rank}", flush=True)
sys.exit(3)
"""
LAID_OVER = """
() => {
  const kinds = "button, a[href], input, select, textarea, label";
  const shown = [...document.querySelectorAll(`main :is(${kinds})`)]
    .filter((control) => control.checkVisibility({ visibilityProperty: true }))
    .filter((control) => !control.closest(".vh, .grip"))
    .map((control) => [control, control.getBoundingClientRect()])
    .filter(([, box]) => box.width > 1 && box.height > 1);
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  const pinned = (control) => control.closest(".act, .pin, .choose");
  return shown.flatMap(([first, box], at) =>
    shown
      .slice(at + 1)
      .filter(([other, its]) => over(box, its) > 2 && down(box, its) > 2 && !first.contains(other))
      .filter(([other]) => !pinned(first) && !pinned(other))
      .map(([other]) => [first, other].map((control) => control.outerHTML.slice(0, 90))),
  );
}
"""
"""Pairs of controls of which one lies on the other, where no column is pinned over others."""


@pytest.fixture
def jobs(cluster, create):
    """One that has ended, and one that waits."""
    searcher = {"name": "single", "metric": METRIC, "max_length": 1}
    create("a-name-of-usual-length", REPORTS, searcher=searcher, labels=["first", "second"])
    create("weights-on-64-slots", wait=False, searcher=searcher, **LARGE)


@pytest.mark.parametrize("place", LISTS)
def test_a_screen_of_1280_pixels_shows_every_column(cluster, jobs, signed_in, place):
    page = signed_in(cluster)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/det/{place}")
    box = page.get_by_role("region", name=f"{LISTS[place]}, scrollable")
    expect(box.locator("tbody tr[data-id]").first).to_be_visible(timeout=60 * SECONDS)
    expect(page.locator(".below", has_text="more column")).to_have_count(0)
    assert box.evaluate("one => one.scrollWidth - one.clientWidth") <= 1
    assert box.locator(HEADS).evaluate_all(CUT) == []
    # A number that is cut reads as another.
    assert box.locator("td.num").evaluate_all(CUT) == []


@pytest.mark.parametrize("width", [390, 1110, 1250, 1280])
def test_no_control_lies_on_another(cluster, create, signed_in, width):
    page = signed_in(cluster)
    page.set_viewport_size({"width": width, "height": 900})
    id = create("fails-on-two-ranks", RANKS)
    trial = cluster.first_trial(id)
    tabs = ("overview", "hyperparameters", "trials", "checkpoints", "code", "logs", "profiler")
    for path in (*(f"experiments/{id}/trials/{trial}/{tab}" for tab in tabs), "system/audit", "experiments"):
        show(page, f"/{path}")
        if path.endswith("logs"):
            expect(page.get_by_role("button", name="At the cause")).to_be_visible(timeout=60 * SECONDS)
        assert page.evaluate(LAID_OVER) == [], path


def test_the_number_of_further_tags_stays_beside_one_that_is_cut(cluster, create, signed_in):
    page = signed_in(cluster)
    create("tags-of-a-team", wait=False, labels=["a" * 60, "b", "c"], **LARGE)
    page.goto("/det/experiments?q=tags-of-a-team")
    tags = page.locator(".tags-of").first
    expect(tags.locator(".sub")).to_have_text("+2", timeout=60 * SECONDS)
    right, cell = (part.bounding_box() for part in (tags.locator(".sub"), tags.locator("xpath=..")))
    assert right
    assert cell
    assert right["x"] + right["width"] <= cell["x"] + cell["width"]


@pytest.mark.parametrize("place", ["dashboard", "experiments"])
def test_a_screen_of_1920_pixels_cuts_no_metric(cluster, jobs, signed_in, place):
    page = signed_in(cluster)
    page.set_viewport_size({"width": 1920, "height": 900})
    page.goto(f"/det/{place}")
    box = page.get_by_role("region", name=f"{LISTS[place]}, scrollable")
    row = box.get_by_role("row", name="a-name-of-usual-length").first
    expect(row).to_be_visible(timeout=60 * SECONDS)
    metric = row.locator("span", has_text=METRIC).last
    expect(metric).to_have_text(METRIC)
    assert metric.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    assert box.locator(HEADS).evaluate_all(CUT) == []


def test_on_a_phone_the_fields_of_a_comparison_can_be_read(cluster, create, signed_in):
    """Their column had the room that the values left: three letters."""
    searcher = {"name": "single", "metric": METRIC, "max_length": 1}
    ids = [create("compared-on-a-phone", REPORTS, searcher=searcher, labels=["a"]) for _ in range(2)]
    page = signed_in(cluster)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/det/experiments/compare?e={ids[0]}&e={ids[1]}")
    field = page.get_by_role("table", name="Details").get_by_role("rowheader", name="Started")
    expect(field).to_be_visible(timeout=60 * SECONDS)
    box = field.bounding_box()
    assert box
    assert box["width"] >= 90


def test_on_a_phone_the_state_and_the_tags_of_a_head_share_a_line(cluster, create, signed_in):
    page = signed_in(cluster)
    labels = ["a", "sweep", "long-tag-of-a-team", "paper"]
    id = create("tagged-on-a-phone", wait=False, labels=labels, **LARGE)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/det/experiments/{id}/overview")
    head = page.locator(".page-head")
    expect(head.get_by_text("2 more")).to_be_visible(timeout=60 * SECONDS)
    expect(head.get_by_text("Cannot start", exact=False).first).to_be_visible()
    parts = [
        head.locator(".state"),
        *head.locator(".tag").all(),
        head.get_by_role("button", name="Edit tags"),
    ]
    middles = [box["y"] + box["height"] / 2 for part in parts if (box := part.bounding_box())]
    assert len(middles) == 4
    assert max(middles) - min(middles) <= 4


def test_c_compares_the_trials_that_are_chosen(cluster, create, signed_in):
    page = signed_in(cluster)
    searcher = {"name": "random", "metric": METRIC, "max_length": 1, "max_trials": 2}
    id = create("compared-by-a-key", REPORTS, searcher=searcher)
    page.goto(f"/det/experiments/{id}/trials")
    boxes = page.get_by_role("table", name="Trials").locator("tbody input[type=checkbox]")
    expect(boxes).to_have_count(2, timeout=60 * SECONDS)
    page.keyboard.press("c")
    expect(page.locator(".drawer")).to_have_count(0)
    boxes.first.focus()
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("button", name="Compare 2")).to_be_visible()
    page.keyboard.press("c")
    expect(page.locator(".drawer")).to_be_visible(timeout=60 * SECONDS)


def test_the_fields_of_a_wide_dialog_are_as_wide_as_it_is(cluster, create, signed_in):
    """They stopped at the width of a form on a page, and left its right part empty."""
    page = signed_in(cluster)
    id = create("forked-in-a-dialog")
    show(page, f"/experiments/{id}/overview")
    page.get_by_role("main").get_by_role("button", name="Fork").click()
    dialog = page.get_by_role("dialog")
    configuration = dialog.get_by_label("Configuration")
    expect(configuration).to_be_visible(timeout=60 * SECONDS)
    whole, field = dialog.bounding_box(), configuration.bounding_box()
    assert whole
    assert field
    left, right = field["x"] - whole["x"], whole["x"] + whole["width"] - field["x"] - field["width"]
    assert abs(left - right) <= 2


def test_on_a_phone_parallel_coordinates_scroll_instead_of_cutting_their_names(cluster, create, signed_in):
    page = signed_in(cluster)
    hyperparameters = {
        name: {"type": "double", "minval": 0, "maxval": 1} for name in ("dropout", "decay", "momentum")
    }
    searcher = {"name": "random", "metric": METRIC, "max_length": 1, "max_trials": 2}
    id = create("axes-on-a-phone", REPORTS, searcher=searcher, hyperparameters=hyperparameters)
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, f"/experiments/{id}/hyperparameters")
    box = page.locator(".sideways")
    expect(box).to_be_visible(timeout=60 * SECONDS)
    assert box.evaluate("one => one.scrollWidth - one.clientWidth") > 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0

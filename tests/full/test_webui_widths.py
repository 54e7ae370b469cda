"""Tables on a small and on a large screen: no column is out of sight, and no heading is cut without need."""

import pytest

from tests.fixtures.browser import MARKS, SECONDS
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
    core.train.report_validation_metrics(steps_completed=1, metrics={{{METRIC!r}: 0.5}})
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

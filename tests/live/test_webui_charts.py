"""Charts of the web UI: live, with a million points, as a link (web UI spec, section 5, checks 2 to 4)."""

import csv
import io
import re
from xml.etree import ElementTree

import pytest

from tests.fixtures.browser import AXE, MARKS, SCHEMES, SECONDS, violations
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.outside import UnmanagedExperiment
from tests.fixtures.painting import RECORD_PAINTS, measure_paint_s, reporting
from tests.live.webui_charts import LONG_CONFIG, POINTS, SPIKE, act, chart, submitted, zoom
from tests.live.webui_charts import long_run as long_run
from tests.live.webui_charts import search as search

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
expect.set_options(timeout=60 * SECONDS)

pytestmark = MARKS


@pytest.mark.full
def test_a_report_is_on_the_screen_at_once_while_a_hundred_trials_are_active(cluster, signed_in):
    outside = UnmanagedExperiment(cluster, "a-hundred", trials=100)
    watched, *others = outside.trials
    outside.report(watched, 1, loss=999)
    page = signed_in(cluster)
    page.goto(f"/det/trials/{watched}")
    expect(chart(page, "loss").locator("output")).to_have_text("999")
    page.evaluate(RECORD_PAINTS)
    with reporting(outside, others):
        waited = [measure_paint_s(page, outside, watched, value) for value in range(100, 120)]
    texts = [text for text, _ in page.evaluate("painted") if text]
    assert list(dict.fromkeys(texts))[-20:] == [str(value) for value in range(100, 120)]
    print(f"report to painted: median {sorted(waited)[10] * 1000:.0f} ms, most {max(waited) * 1000:.0f} ms")


# -- check 3

TOPS = """
(figure) => {
  const [canvas, over] = [figure.querySelector("canvas"), figure.querySelector(".u-over")];
  const [all, part] = [canvas.getBoundingClientRect(), over.getBoundingClientRect()];
  const ratio = canvas.width / all.width;
  const [left, top] = [(part.left - all.left) * ratio, (part.top - all.top) * ratio];
  const [width, height] = [Math.floor(part.width * ratio), Math.floor(part.height * ratio * 0.3)];
  const { data } = canvas.getContext("2d").getImageData(left, top, width, height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 2] - data[at] > 60) found.add(((at / 4) % width) / width);
  return [...found];
}
"""
"""Where in the uppermost third of a chart something blue, as the first line is, was drawn."""


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_spike_among_a_million_points_is_seen_and_its_value_is_found(cluster, signed_in, long_run):
    page = signed_in(cluster)
    page.goto(f"/det/trials/{long_run}")
    page.wait_for_url(re.compile("/overview"))
    page.goto(f"{page.url}?q=noise")
    figure = chart(page, "noise")
    expect(figure.locator("output")).not_to_be_empty()
    tops = chart(page, "noise").evaluate(TOPS)
    # The x axis ends some points behind a million.
    assert tops
    assert all(abs(place - SPIKE / POINTS) < 0.01 for place in tops)
    for _ in range(3):
        tops = chart(page, "noise").evaluate(TOPS)
        place = sum(tops) / len(tops)
        zoom(page, figure, place - 0.015, place + 0.015)
    act(page, chart(page, "noise"), "As table")
    expect(figure.get_by_role("row", name=re.compile(f"training {SPIKE:,} 1,000 log"))).to_have_count(1)
    act(page, figure, "As chart")
    figure.locator(".u-over").dblclick()
    expect(page).to_have_url(re.compile(r"q=noise$"))


@pytest.mark.full
@pytest.mark.timeout(900)
def test_three_thousand_metrics_leave_the_page_light(cluster, signed_in, long_run):
    page = signed_in(cluster)
    page.goto(f"/det/trials/{long_run}")
    status = page.locator(".chart-tools [role=status]")
    # What the machine reported of itself is there, too.
    expect(status).to_have_text(re.compile(r"^3,0\d\d metrics$"))
    count = int(status.text_content().split()[0].replace(",", ""))
    expect(page.locator(".place")).to_have_count(count)
    expect(page.locator("canvas").first).to_be_visible()
    assert page.locator("canvas").count() < 20
    page.locator(".place").nth(2500).scroll_into_view_if_needed()
    chart(page, page.locator(".place").nth(2500).get_attribute("data-name"))
    wait_for(lambda: page.locator("canvas").count() < 20, 60, "the charts out of view to be taken away")
    page.get_by_label("Find a metric").fill("layer.2999/")
    expect(status).to_have_text(f"1 of {count:,} metrics")
    chart(page, "layer.2999/norm")


# -- check 4


@pytest.mark.full
def test_a_link_shows_the_same_to_a_colleague(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/overview")
    chart(page, "loss")
    page.get_by_role("combobox", name="x", exact=True).select_option("epoch")
    page.get_by_role("button", name="Log", exact=True).click()
    page.get_by_label("Smoothing").fill("0.6")
    page.get_by_role("button", name="More chart options").click()
    page.get_by_label("Band of extremes").uncheck()
    page.keyboard.press("Escape")
    zoom(page, chart(page, "loss"), 0.1, 0.6)
    assert {"x=epoch", "y=log", "s=0.6", "b=0"} <= set(page.url.partition("?")[2].split("&"))
    same(page, signed_in(cluster), ["figure[aria-label=loss]"])


@pytest.mark.full
def test_the_view_of_a_search_is_in_its_link(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/hyperparameters")
    page.get_by_role("button", name="Axes and ranges").click()
    page.get_by_label("act is").select_option('"relu"')
    page.get_by_role("button", name="lr to the left").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Remove act is relu")).to_be_visible()
    chosen = page.get_by_text(re.compile(r"[1-7] of 8 trials chosen")).text_content()
    other = signed_in(cluster)
    same(page, other, ["#parallel .drawing", "#importance"])
    page.get_by_role("button", name="Pairs", exact=True).click()
    page.get_by_label("Below").select_option("contour")
    same(page, other, ["#pairs .drawing"])
    page.get_by_role("button", name="Learning curves").click()
    chart(page, "loss")
    same(page, other, ["#curves figure"])
    page.get_by_role("button", name="Table", exact=True).click()
    rows = page.get_by_role("table", name="Trials").locator("tbody tr")
    expect(rows).to_have_count(int(chosen[0]))


PICTURES = "one => [one.innerText, ...[...one.querySelectorAll('canvas')].map(each => each.toDataURL())]"


def same(page, other, parts):
    """Another person's browser shows the same, pixel for pixel."""
    page.mouse.move(0, 0)
    other.goto(page.url)
    for part in parts:
        # What is out of view is not drawn.
        for viewer in (page, other):
            viewer.locator(part.partition(" ")[0]).first.scroll_into_view_if_needed()
        both = page.locator(part).first, other.locator(part).first
        look = lambda both=both: [element.evaluate(PICTURES) for element in both]  # noqa: E731
        wait_for(lambda look=look: look()[0] == look()[1], 60, f"{part} to look the same")


# -- colours by choice


@pytest.mark.full
def test_trials_are_chosen_lit_and_hidden_in_the_list_beside_their_charts(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/overview")
    chart(page, "loss")
    picked = page.locator(".trial-list .pick[aria-pressed=true]")
    # Nobody has chosen: the best five.
    expect(picked).to_have_count(5)
    last = page.locator(".trial-list [data-trial]").last
    trial = last.get_attribute("data-trial")
    page.get_by_role("button", name=f"Choose trial {trial}").click()
    expect(picked).to_have_count(6)
    expect(page).to_have_url(re.compile(rf"[?&]c=[^&]*{trial}\.6"))
    # It is the same colour on the next visit, and where trials are compared.
    page.goto(f"/det/experiments/{search}/overview")
    expect(picked).to_have_count(6)
    page.get_by_role("button", name=f"Colour of trial {trial}").click()
    page.get_by_role("button", name="Colour 9: free").click()
    expect(page).to_have_url(re.compile(rf"{trial}\.9"))
    page.get_by_role("button", name=f"Choose trial {trial}").focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile(rf"hi={trial}"))
    page.keyboard.press("Space")
    expect(page).not_to_have_url(re.compile("hi="))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("button", name=f"Choose trial {trial}")).not_to_be_focused()
    page.get_by_label("Find trials").fill(f"{trial}")
    expect(page.locator(".trial-list [data-trial]")).to_have_count(1)
    page.get_by_role("button", name="Best", exact=True).click()
    expect(page).not_to_have_url(re.compile("[?&]c="))


@pytest.mark.full
def test_a_chart_is_pinned_fills_the_window_and_has_a_scale_of_its_own(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/overview")
    figure = chart(page, "acc")
    figure.get_by_role("button", name="Pin acc").click()
    expect(page.get_by_role("region", name="Pinned").get_by_role("figure", name="acc")).to_be_visible()
    # Where it stands now is another figure of the same name.
    figure = chart(page, "acc")
    figure.locator(".u-over").hover()
    expect(page.locator(".chart-tip")).to_contain_text("batch")
    page.keyboard.press("z")
    expect(page).to_have_url(re.compile("full=acc"))
    expect(page.locator(".chart.full")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".chart.full")).to_have_count(0)
    act(page, figure, "Log scale")
    expect(page).to_have_url(re.compile("cs=acc%7Elog|cs=acc~log"))
    act(page, figure, "Range of y")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From").fill("2")
    dialog.get_by_label("To").fill("1")
    dialog.get_by_role("button", name="Set range").click()
    expect(dialog.get_by_role("alert")).to_contain_text("lower one first")
    dialog.get_by_label("From").fill("0.5")
    dialog.get_by_role("button", name="Set range").click()
    expect(page).to_have_url(re.compile(r"0\.5\.\.1"))


@pytest.mark.full
def test_a_double_click_returns_to_the_whole_range_wherever_it_is_made(cluster, signed_in, search):
    """On a line, its first click opened a trial."""
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/overview")
    figure = chart(page, "loss")
    zoom(page, figure, 0.2, 0.9)
    expect(page).to_have_url(re.compile(r"[?&]z="))
    over = figure.locator(".u-over")
    box = over.bounding_box()
    assert box
    for place in range(2, int(box["height"]), 6):
        over.hover(position={"x": box["width"] / 2, "y": place})
        if over.evaluate("over => getComputedStyle(over).cursor") == "pointer":
            break
    else:
        pytest.fail("no line in the middle of the chart")
    page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + place)
    expect(page).not_to_have_url(re.compile(r"[?&]z="))
    expect(page).to_have_url(re.compile(f"/experiments/{search}/overview"))
    # One click opens, after it was clear that no second one comes.
    zoom(page, figure, 0.2, 0.9)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + place)
    expect(page).to_have_url(re.compile(r"/trials/\d+/overview|/checkpoints"))


@pytest.mark.full
def test_charts_are_taken_away_and_say_what_is_no_number(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/overview")
    figure = chart(page, "loss")
    expect(figure.get_by_text("8 values were not numbers")).to_be_visible()
    content = {}
    for kind in ("CSV", "SVG", "PNG"):
        with page.expect_download() as download:
            act(page, figure, f"Export as {kind}")
        content[kind] = download.value.path().read_bytes()
    rows = list(csv.DictReader(io.StringIO(content["CSV"].decode())))
    assert {row["group"] for row in rows} == {"training", "validation"}
    assert sum(int(row["non_finite"]) for row in rows) == 8
    assert len(ElementTree.fromstring(content["SVG"]).findall(".//{*}path")) > 16
    assert content["PNG"].startswith(b"\x89PNG")


SAYS = """
import time
import determined as det

with det.core.init() as core:
    for step in range(1, 5):
        print(f"before step {step}", flush=True)
        # What is printed and what is reported later must differ in time.
        time.sleep(0.3)
        core.train.report_training_metrics(steps_completed=step, metrics={"loss": 10 - step})
        print(f"behind step {step}", flush=True)
        time.sleep(0.3)
    for op in core.searcher.operations():
        op.report_completed(0.0)
"""
SAYS_CONFIG = LONG_CONFIG.replace("long.py", "says.py").replace("a-long-run", "says")


def test_a_point_of_a_curve_leads_to_the_log_at_that_time(cluster, signed_in, tmp_path):
    id = submitted(cluster, tmp_path, SAYS, SAYS_CONFIG, "says.py")
    cluster.wait_for_end(id)
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{id}/trials/{cluster.first_trial(id)}/overview")
    figure = chart(page, "loss")
    box = figure.locator(".u-over").bounding_box()
    # The first point is at the left edge, at the top but for the margin of the axis.
    figure.locator(".u-over").click(position={"x": 2, "y": box["height"] * 0.05})
    expect(figure.locator(".picked")).to_contain_text("training · batches 1 · 9")
    figure.get_by_role("button", name="log at this time").click()
    expect(page).to_have_url(re.compile(r"/logs\?at=2"))
    expect(page.locator(".line", has_text="behind step 1")).to_be_in_viewport()
    page.go_back()
    act(page, chart(page, "loss"), "As table")
    row = figure.get_by_role("row", name=re.compile("training 3 7"))
    row.get_by_role("button", name="log at this time").click()
    expect(page.locator(".line", has_text="behind step 3")).to_be_in_viewport()


def test_trials_tell_what_the_search_decided_and_are_compared(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/trials")
    table = page.get_by_role("table", name="Trials")
    ((low, top),) = cluster.get(f"experiments/{search}/rungs")["brackets"]
    stopped = [entry for entry in low["entries"] if entry["verdict"] == "stopped"]
    assert len(stopped) + top["count"] == low["count"] == 8
    expect(table.get_by_text(re.compile(r"reached 16, "))).to_have_count(top["count"])
    expect(table.get_by_text(re.compile(r"stopped after 4, "))).to_have_count(len(stopped))
    for box in table.locator("tbody").get_by_role("checkbox").all()[:2]:
        box.check()
    page.get_by_role("button", name="Compare 2").click()
    # Beside the table first: who is best, the curves, where they differ.
    beside = page.get_by_role("complementary", name="Compare")
    expect(beside.get_by_role("list", name="Values, best first").get_by_role("listitem")).to_have_count(2)
    expect(beside.get_by_role("figure", name="loss").locator("canvas")).to_be_visible()
    expect(beside.get_by_role("row", name=re.compile(r"lr \(differs\)"))).to_be_visible()
    beside.get_by_role("link", name="Open as a page").click()
    expect(page).to_have_url(re.compile(r"/experiments/compare\?t="))
    chart(page, "loss")
    expect(page.locator(".trial-list [aria-pressed=true].pick")).to_have_count(2)
    page.get_by_role("button", name=re.compile("^Differences")).click()
    details = page.get_by_role("table", name="Details")
    expect(details.get_by_role("row", name=re.compile(r"lr \(differs\)"))).to_be_visible()
    page.get_by_role("button", name="Only what differs").click()
    expect(details.get_by_role("row", name=re.compile("entrypoint"))).to_have_count(0)


def test_former_addresses_open_the_right_view(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/visualization/hp-heat-map")
    expect(page.get_by_role("heading", name="Pairs of hyperparameters")).to_be_in_viewport()


VIEWS = (
    "experiments/{id}/overview?z=2..9&s=0.5",
    "experiments/{id}/overview?cb=hp.act&gb=hp.act",
    "experiments/{id}/hyperparameters?n=10",
    "experiments/{id}/hyperparameters?v=pairs&k=1&cr=rank",
    "experiments/{id}/hyperparameters?v=curves",
    "experiments/{id}/trials",
    "experiments/compare?e={id}",
    "experiments/compare?e={id}&v=parallel",
    "experiments/compare?e={id}&v=details",
    "experiments/compare",
)


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
def test_everybody_can_use_every_chart(cluster, signed_in, search, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make setup")
    page = signed_in(cluster)
    page.emulate_media(color_scheme=scheme)
    faults = {}
    for view in VIEWS:
        page.goto("/det/" + view.format(id=search))
        expect(page.locator("main h1, main h2").first).to_be_visible()
        expect(page.locator(".skeleton")).to_have_count(0)
        expect(page.locator("figure[aria-busy=true]")).to_have_count(0)
        for figure in page.locator("figure.chart").all()[1:2]:
            act(page, figure, "As table")
            expect(page.get_by_role("menuitem")).to_have_count(0)
        faults |= {f"{view} {rule}": where for rule, where in violations(page).items()}
    assert faults == {}

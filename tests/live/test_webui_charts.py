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
from tests.fixtures.outside import Outside
from tests.fixtures.painting import NOTE, reporting, until_painted_s

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
expect.set_options(timeout=60 * SECONDS)
pytestmark = MARKS

SEARCH = """
import math
import random
import determined as det

hparams = det.get_cluster_info().trial.hparams
chance = random.Random(det.get_cluster_info().trial.trial_seed)
with det.core.init() as core:
    done = 0
    for op in core.searcher.operations():
        while done < op.length:
            done += 1
            loss = abs(math.log10(hparams["lr"]) + 3) + 2 / done + (0.5 if hparams["act"] == "tanh" else 0)
            told = {"loss": loss, "epoch": done / 4, "acc": 1 / (1 + loss)}
            core.train.report_training_metrics(steps_completed=done, metrics=told)
            broken = math.nan if done == 2 else loss
            core.train.report_validation_metrics(steps_completed=done, metrics={"loss": broken})
        with core.checkpoint.store_path({"steps_completed": done}) as (path, _):
            (path / "weights").write_text("w")
        op.report_completed(loss)
"""
SEARCH_CONFIG = """
name: a-search
entrypoint: python3 search.py
hyperparameters:
  lr: {type: log, base: 10, minval: -5, maxval: -1}
  act: {type: categorical, vals: [relu, tanh]}
  layers: {type: int, minval: 1, maxval: 4}
searcher: {name: adaptive_asha, mode: aggressive, metric: loss, max_length: 16, max_rungs: 2, max_trials: 8}
resources: {slots_per_trial: 1}
# Some trials of each kind, whatever is drawn of them.
reproducibility: {experiment_seed: 7}
"""
POINTS, SPIKE = 1_000_000, 654_321
LONG = f"""
import random
import determined as det

chance = random.Random(5)
with det.core.init() as core:
    for step in range(1, {POINTS} + 1):
        value = 1000.0 if step == {SPIKE} else chance.random()
        core.train.report_training_metrics(steps_completed=step, metrics={{"noise": value}})
    for step in range({POINTS} + 1, {POINTS} + 4):
        many = {{f"layer.{{at}}/norm": step / (at + 1) for at in range(3000)}}
        core.train.report_training_metrics(steps_completed=step, metrics=many)
    for op in core.searcher.operations():
        op.report_completed(0.0)
"""
LONG_CONFIG = """
name: a-long-run
entrypoint: python3 long.py
searcher: {name: single, metric: x, max_length: 1}
"""


def submitted(cluster, folder, script, config, name):
    (folder / name).write_text(script)
    (folder / "config.yaml").write_text(config)
    return cluster.create("config.yaml", folder)


@pytest.fixture(scope="module")
def search(shared_cluster, tmp_path_factory):
    """A search of eight trials that is over."""
    id = submitted(shared_cluster, tmp_path_factory.mktemp("search"), SEARCH, SEARCH_CONFIG, "search.py")
    assert shared_cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    return id


@pytest.fixture(scope="module")
def long_run(shared_cluster, tmp_path_factory):
    """The trial of a million points, and of 3,000 metric names at its end."""
    id = submitted(shared_cluster, tmp_path_factory.mktemp("long"), LONG, LONG_CONFIG, "long.py")
    assert shared_cluster.wait_for_end(id, within_s=500)["state"] == "STATE_COMPLETED"
    return shared_cluster.trials(id)[0]["id"]


def chart(page, name):
    found = page.get_by_role("figure", name=name, exact=True)
    expect(found.locator("canvas")).to_be_visible()
    expect(found).to_have_attribute("aria-busy", "false")
    page.evaluate(FRAMES)
    return found


FRAMES = "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
"""What the page has is on the canvas once it has had a frame of its own."""


def zoom(page, figure, start, end):
    """Drag over a part of a chart, and wait until the page knows the range."""
    before = page.get_by_role("spinbutton", name="from").input_value()
    drag(page, figure, start, end)
    expect(page.get_by_role("spinbutton", name="from")).not_to_have_value(before)


def drag(page, figure, start, end):
    """Drag over a part of a chart, given as shares of its width."""
    figure.scroll_into_view_if_needed()
    box = figure.locator(".u-over").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], height, steps=4)
    page.mouse.up()


# -- check 2


def test_a_report_is_on_the_screen_at_once_while_a_hundred_trials_are_active(cluster, signed_in):
    outside = Outside(cluster, "a-hundred", trials=100)
    watched, *others = outside.trials
    outside.report(watched, 1, loss=999)
    page = signed_in(cluster)
    page.goto(f"/det/trials/{watched}")
    expect(chart(page, "loss").locator("output")).to_have_text("999")
    page.evaluate(NOTE)
    with reporting(outside, others):
        waited = [until_painted_s(page, outside, watched, value) for value in range(100, 120)]
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
        before, tops = page.url, chart(page, "noise").evaluate(TOPS)
        place = sum(tops) / len(tops)
        zoom(page, figure, place - 0.015, place + 0.015)
        expect(page).not_to_have_url(before)
    chart(page, "noise").get_by_role("button", name="Show as table").click()
    expect(figure.get_by_role("row", name=re.compile(f"training {SPIKE:,} 1,000 log"))).to_have_count(1)
    figure.get_by_role("button", name="Show as chart").click()
    figure.locator(".u-over").dblclick()
    expect(page).to_have_url(re.compile(r"q=noise$"))


@pytest.mark.timeout(900)
def test_three_thousand_metrics_leave_the_page_light(cluster, signed_in, long_run):
    page = signed_in(cluster)
    page.goto(f"/det/trials/{long_run}")
    expect(page.get_by_text("3,001 metrics")).to_be_visible()
    expect(page.locator(".place")).to_have_count(3001)
    expect(page.locator("canvas").first).to_be_visible()
    assert page.locator("canvas").count() < 20
    page.locator(".place").nth(2500).scroll_into_view_if_needed()
    chart(page, page.locator(".place").nth(2500).get_attribute("data-name"))
    wait_for(lambda: page.locator("canvas").count() < 20, 20, "the charts out of view to be taken away")
    page.get_by_label("name").fill("layer.2999/")
    expect(page.get_by_text("1 of 3,001 metrics")).to_be_visible()
    chart(page, "layer.2999/norm")


# -- check 4


def test_a_link_shows_the_same_to_a_colleague(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/overview")
    chart(page, "loss")
    page.get_by_role("combobox", name=re.compile("^x")).select_option("epoch")
    page.get_by_role("combobox", name=re.compile("^y")).select_option("log")
    page.get_by_label("smoothing").fill("0.6")
    page.get_by_label("band of extremes").uncheck()
    zoom(page, chart(page, "loss"), 0.1, 0.6)
    assert {"x=epoch", "y=log", "s=0.6", "b=0"} <= set(page.url.partition("?")[2].split("&"))
    same(page, signed_in(cluster), ["figure[aria-label=loss]"])


def test_the_view_of_a_search_is_in_its_link(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/hyperparameters")
    page.get_by_text("Axes and ranges").click()
    page.get_by_label("act is").select_option('"relu"')
    page.get_by_role("button", name="lr to the left").click()
    page.get_by_label("contour").check()
    chosen = page.get_by_text(re.compile(r"[1-7] of 8 trials chosen")).text_content()
    rows = page.get_by_role("table", name="Trials").locator("tbody tr")
    expect(rows).to_have_count(int(chosen[0]))
    same(page, signed_in(cluster), ["#curves figure", "#parallel .drawing", "#pairs .drawing", "#importance"])


PICTURES = "one => [one.innerText, ...[...one.querySelectorAll('canvas')].map(each => each.toDataURL())]"


def same(page, other, parts):
    """Another person's browser shows the same, pixel for pixel."""
    page.mouse.move(0, 0)
    other.goto(page.url)
    for part in parts:
        # What is out of view is not drawn.
        for one in (page, other):
            one.locator(part.partition(" ")[0]).first.scroll_into_view_if_needed()
        both = page.locator(part).first, other.locator(part).first
        look = lambda both=both: [one.evaluate(PICTURES) for one in both]  # noqa: E731
        wait_for(lambda look=look: look()[0] == look()[1], 20, f"{part} to look the same")


# -- what charts can do


def test_charts_are_taken_away_and_say_what_is_no_number(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/overview?n=8")
    figure = chart(page, "loss")
    expect(figure.get_by_text("8 not finite")).to_be_visible()
    figure.locator("summary").click()
    content = {}
    for kind in ("CSV", "SVG", "PNG"):
        with page.expect_download() as told:
            figure.get_by_role("button", name=kind).click()
        content[kind] = told.value.path().read_bytes()
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
    chart(page, "loss").get_by_role("button", name="Show as table").click()
    row = figure.get_by_role("row", name=re.compile("training 3 7"))
    row.get_by_role("button", name="log at this time").click()
    expect(page.locator(".line", has_text="behind step 3")).to_be_in_viewport()


def test_trials_that_a_script_makes_outside_are_all_shown(cluster, signed_in):
    """Their experiment is called a single one, whatever their number."""
    outside = Outside(cluster, "several-outside", trials=3)
    for trial in outside.trials:
        outside.report(trial, 1, loss=trial)
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{outside.id}")
    expect(chart(page, "loss").locator(".legend output")).to_have_count(3)
    page.get_by_role("link", name="Trials", exact=True).click()
    expect(page.get_by_role("table", name="Trials").locator("tbody tr")).to_have_count(3)


def test_trials_tell_what_the_search_decided_and_are_compared(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/trials")
    table = page.get_by_role("table", name="Trials")
    ((low, top),) = cluster.get(f"experiments/{search}/rungs")["brackets"]
    stopped = [one for one in low["entries"] if one["verdict"] == "stopped"]
    assert len(stopped) + top["count"] == low["count"] == 8
    expect(table.get_by_text(re.compile(r"reached 16 \(rung 2 of 2\)"))).to_have_count(top["count"])
    expect(table.get_by_text(re.compile(r"stopped at 4 \(rung 1 of 2\)"))).to_have_count(len(stopped))
    expect(page.get_by_text(f"4: 8 results, {top['count']} promoted")).to_be_visible()
    for box in table.get_by_role("checkbox").all()[:2]:
        box.check()
    page.get_by_role("button", name="Compare 2").click()
    expect(page).to_have_url(re.compile(r"/experiments/compare\?t="))
    expect(chart(page, "loss").locator(".legend")).to_contain_text("training")
    page.get_by_role("button", name="Details").click()
    details = page.get_by_role("table", name="Details")
    expect(details.get_by_role("row", name=re.compile(r"lr \(differs\)"))).to_be_visible()
    page.get_by_label("only what differs").check()
    expect(details.get_by_role("row", name=re.compile("entrypoint"))).to_have_count(0)


def test_former_addresses_open_the_right_view(cluster, signed_in, search):
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{search}/visualization/hp-heat-map")
    expect(page.get_by_role("heading", name="Heat map of pairs")).to_be_in_viewport()


VIEWS = (
    "experiments/{id}/overview?z=2..9&s=0.5",
    "experiments/{id}/hyperparameters?n=10&k=1&c=rank",
    "experiments/{id}/trials",
    "experiments/compare?e={id}",
    "experiments/compare?e={id}&v=parallel",
    "experiments/compare?e={id}&v=details",
    "experiments/compare",
)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_everybody_can_use_every_chart(cluster, signed_in, search, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make setup")
    page = signed_in(cluster)
    page.emulate_media(color_scheme=scheme)
    found = {}
    for view in VIEWS:
        page.goto("/det/" + view.format(id=search))
        expect(page.locator("main h1, main h2").first).to_be_visible()
        expect(page.locator(".skeleton")).to_have_count(0)
        expect(page.locator("figure[aria-busy=true]")).to_have_count(0)
        for summary in page.locator("summary").all():
            summary.click()
        for button in page.get_by_role("button", name="Show as table").all()[1:2]:
            button.click()
        found |= {f"{view} {rule}": where for rule, where in violations(page).items()}
    assert found == {}

"""The log of a trial in a browser: a window that moves through all of it (web UI spec, section 3.6)."""

import re

import pytest

from tests.fixtures.browser import AXE, MARKS, SCHEMES, SECONDS, violations
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS

COUNT = 20_000
WRITES = f"""
import sys, time
for n in range(1, {COUNT} + 1):
    level = "WARNING" if n % 1000 == 0 else "INFO"
    print(f"[rank={{n % 4}}] {{level}}: step {{n}} of many")
print("[rank=2] \\x1b[1;31mred\\x1b[0m <b>bold</b> \\x07")
for _ in range(30):
    print("again and again")
print("x" * 20_000 + " needle at the end")
for rank, word in ((3, "lost rank 1"), (1, "ZeroDivisionError: division by zero")):
    print(f"[rank={{rank}}] ERROR: {{word}}")
print("that is all")
sys.exit(1)
"""
CONFIG = """
name: writes-a-lot
entrypoint: python3 writes.py
max_restarts: 0
searcher: {name: single, metric: x, max_length: 1}
"""
TALKS = """
import time
for n in range(300):
    print("before", n)
time.sleep(0.5)
n = 0
while True:
    print("tick", n, flush=True)
    n += 1
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def failed(shared_cluster, tmp_path_factory):
    """Path of the log page of a trial that has written a lot and failed."""
    folder = tmp_path_factory.mktemp("writes")
    (folder / "writes.py").write_text(WRITES)
    (folder / "config.yaml").write_text(CONFIG)
    id = shared_cluster.create("config.yaml", folder)
    shared_cluster.wait_for_end(id)
    trial = shared_cluster.first_trial(id)
    wait_for(
        lambda: shared_cluster.get(f"trials/{trial}/logs/summary")["lines"] > COUNT + 30, 30, "all lines"
    )
    return id, trial


@pytest.fixture
def page(cluster, failed, signed_in):
    page = signed_in(cluster)
    expect.set_options(timeout=60 * SECONDS)
    id, trial = failed
    page.goto(f"/det/experiments/{id}/trials/{trial}/logs")
    expect(page.locator(".log .line").first).to_be_visible()
    return page


def more(page):
    """The panel with what is used less often."""
    page.get_by_role("button", name="More filters").click()
    return page.get_by_role("dialog", name="More filters")


def lines(page):
    return page.locator(".log .line")


def in_view(page):
    """Texts of the lines that can be seen."""
    return page.locator(".log").evaluate(
        """box => [...box.querySelectorAll(".line")].filter(one => {
            const [a, b] = [one.getBoundingClientRect(), box.getBoundingClientRect()];
            return a.bottom > b.top && a.top < b.bottom;
        }).map(one => one.querySelector(".text").textContent)"""
    )


def go_to(page, number):
    """Press the strip beside the log where a line is."""
    strip = page.get_by_role("slider", name="Place in the log")
    box = strip.bounding_box()
    strip.click(position={"x": 5, "y": box["height"] * number / (COUNT + 36)})


def see(page, text):
    wait_for(lambda: any(text in line for line in in_view(page)), 60, f"'{text}' in view")


STILL = """(box, before) => new Promise(still => {
    let [top, since, frames, moved] = [before, 0, 0, false];
    const look = () => {
        since = box.scrollTop === top ? since + 1 : 0;
        top = box.scrollTop;
        moved ||= top !== before;
        frames += 1;
        // At an end it does not move at all.
        return since > 5 && (moved || frames > 30) ? still() : requestAnimationFrame(look);
    };
    look();
})"""


def wheel(page, pixels):
    """Turn the wheel, and wait until the log moves no more: a turn takes many frames."""
    box = page.locator(".log")
    before = box.evaluate("box => box.scrollTop")
    page.mouse.wheel(0, pixels)
    box.evaluate(STILL, before)


def test_it_opens_at_what_failed_first_and_errors_are_a_key_away(page):
    cause = page.get_by_role("region", name="Cause of the failure")
    expect(cause.get_by_role("heading")).to_have_text("Rank 3 failed first")
    expect(cause).to_contain_text("4 ranks")
    see(page, "lost rank 1")
    assert lines(page).count() <= 200
    expect(page.locator(".line.of-cause.is-said .text")).to_have_text("ERROR lost rank 1")
    page.locator(".log").focus()
    page.keyboard.press("e")
    expect(page.locator(".line.chosen .text")).to_have_text("ERROR lost rank 1")
    assert "line=" in page.url
    page.keyboard.press("n")
    expect(page.locator(".line.chosen .text")).to_have_text("ERROR ZeroDivisionError: division by zero")
    page.keyboard.press("n")
    expect(page.get_by_role("status").filter(has_text="No error behind this line.")).to_be_visible()
    page.keyboard.press("N")
    expect(page.locator(".line.chosen .text")).to_have_text("ERROR lost rank 1")
    page.keyboard.press("Home")
    see(page, "step 1 of many")
    page.get_by_role("button", name="Line 20,034").click()
    see(page, "lost rank 1")


@pytest.mark.full
def test_all_of_it_can_be_scrolled_without_a_gap(page):
    page.get_by_role("button", name="Start", exact=True).click()
    see(page, "step 1 of many")
    steps = set()
    box = page.locator(".log")
    box.hover()

    def look():
        texts = lines(page).all_inner_texts()
        assert len(texts) <= 200
        steps.update(n for text in texts for n in map(int, re.findall(r"step (\d+) of", text)))

    def scrolled():
        wheel(page, 700)
        look()
        return max(steps) > 1300

    look()
    # More than a page keeps.
    wait_for(scrolled, 120, "1,300 lines")
    assert steps == set(range(1, max(steps) + 1))
    # And back over what was let go meanwhile.
    steps.clear()

    look()

    def back():
        wheel(page, -700)
        look()
        return min(steps) == 1

    wait_for(back, 120, "the first line")
    assert steps == set(range(1, max(steps) + 1))


@pytest.mark.full
def test_any_place_is_one_move_away(page):
    go_to(page, 10_000)
    lines_shown = page.locator(".logfoot .seen")
    expect(lines_shown).to_contain_text(re.compile(r"Lines (9,[89]|10,0)\d\d to .* of 20,03\d"))
    strip = page.get_by_role("slider", name="Place in the log")
    strip.focus()
    page.keyboard.press("Home")
    see(page, "step 1 of many")
    page.keyboard.press("PageDown")
    expect(lines_shown).to_contain_text(re.compile(r"Lines (1,9|2,0)\d\d to"))
    page.locator(".log").focus()
    page.keyboard.press("Home")
    see(page, "step 1 of many")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".line.chosen")).to_have_count(1)
    page.keyboard.press("End")
    see(page, "that is all")
    page.keyboard.press("e")
    expect(page.locator(".line.chosen .text")).to_have_text("ERROR lost rank 1")


@pytest.mark.full
def test_a_link_to_a_line_shows_it_to_whoever_follows_it(page):
    go_to(page, 5_000)
    expect(page.locator(".logfoot .seen")).to_contain_text(re.compile(r"Lines [45],\d"))
    row = page.locator(".line", has_text="INFO").or_(page.locator(".line")).nth(25)
    text = row.locator(".text").inner_text()
    row.locator(".text").click()
    # The first line of a log says where the trial runs.
    number = f"{int(text.split()[1]) + 1:,}"
    expect(page.locator(".line.chosen .text")).to_have_text(text)
    expect(page.get_by_role("group", name="Selected line")).to_contain_text(f"line {number}")
    expect(page).to_have_url(re.compile("line="))
    page.goto(page.url)
    see(page, text)
    expect(page.locator(".line.chosen .text")).to_have_text(text)


@pytest.mark.full
def test_filters_and_search_are_in_the_link(page):
    page.get_by_label("Level").select_option("WARNING")
    expect(lines(page)).to_have_count(22)
    page.get_by_label("Ranks").select_option("1")
    expect(lines(page)).to_have_count(1)
    page.get_by_label("Ranks").select_option("0")
    expect(lines(page)).to_have_count(20)
    page.get_by_label("Search in the log").fill("1000 of")
    page.keyboard.press("Enter")
    expect(lines(page)).to_have_count(2)
    expect(page.locator("mark").first).to_have_text("1000 of")
    page.reload()
    expect(lines(page)).to_have_count(2)
    assert {"level=WARNING", "rank=0"} <= set(re.split("[?&]", page.url))
    page.get_by_text("step 11000 of many").click()
    page.get_by_role("button", name="Show surrounding lines").click()
    see(page, "step 10999 of many")
    expect(page.locator(".line.chosen .text")).to_have_text("WARNING step 11000 of many")
    expect(page.get_by_label("Ranks")).to_have_value("")


@pytest.mark.full
def test_a_pattern_is_found_jumped_to_and_refused_with_its_reason(page):
    more(page).get_by_label("The search is a regular expression").check()
    page.keyboard.press("Escape")
    page.get_by_label("Search in the log").fill("step 1?777 o.")
    page.keyboard.press("Enter")
    expect(lines(page)).to_have_count(2)
    expect(page.locator("mark")).to_have_text(["step 777 of", "step 1777 of"])
    more(page).get_by_label("Show only matching lines").uncheck()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Start", exact=True).click()
    see(page, "step 1 of many")
    page.locator(".log").focus()
    page.keyboard.press("n")
    expect(page.locator(".line.chosen .text")).to_have_text("step 777 of many")
    see(page, "step 776 of many")
    page.keyboard.press("n")
    expect(page.locator(".line.chosen .text")).to_have_text("step 1777 of many")
    more(page).get_by_role("button", name="Next hit").click()
    expect(page.get_by_role("status").filter(has_text="No hit behind this line.")).to_be_visible()
    page.get_by_role("button", name="Previous hit").click()
    expect(page.locator(".line.chosen .text")).to_have_text("step 777 of many")
    page.keyboard.press("Escape")
    more(page).get_by_label("Show only matching lines").check()
    page.keyboard.press("Escape")
    page.get_by_label("Search in the log").fill("step (")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("missing )")


def test_lines_are_shown_in_colour_and_as_text(page):
    search = page.get_by_label("Search in the log")
    search.fill("<b>bold")
    page.keyboard.press("Enter")
    expect(lines(page)).to_have_count(1)
    expect(page.locator(".f1.bold")).to_have_text("red")
    expect(lines(page).locator(".text")).to_have_text("red <b>bold</b> \u2407")
    search.fill("again and again")
    page.keyboard.press("Enter")
    expect(lines(page)).to_have_count(30)
    more(page).get_by_label("Merge repeated lines").check()
    page.keyboard.press("Escape")
    expect(lines(page)).to_have_count(1)
    expect(lines(page)).to_contain_text("\u00d730")
    expect(page.locator(".line time").first).to_be_visible()
    page.get_by_role("button", name="Time stamps").click()
    expect(page.locator(".line time")).to_have_count(0)
    page.reload()
    expect(page.locator(".line time")).to_have_count(0)


@pytest.mark.full
def test_a_long_line_is_cut_and_can_be_seen_whole(page):
    page.get_by_label("Search in the log").fill("needle")
    page.keyboard.press("Enter")
    expect(lines(page)).to_have_count(1)
    expect(lines(page)).to_contain_text("11,826 more characters")
    expect(lines(page)).not_to_contain_text("needle")
    lines(page).click(position={"x": 300, "y": 10})
    page.get_by_role("button", name="Show the whole line").click()
    expect(lines(page)).to_contain_text("needle at the end")


@pytest.mark.full
def test_the_shown_lines_can_be_downloaded_and_copied_as_a_command(cluster, failed, page):
    page.get_by_label("Level").select_option("ERROR")
    expect(lines(page)).to_have_count(2)
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download filtered lines").click()
    _, trial = failed
    assert coming.value.suggested_filename == f"trial-{trial}.log"
    text = coming.value.path().read_text()
    assert [line.split("|| ")[1] for line in text.splitlines()] == [
        "ERROR: lost rank 1",
        "ERROR: ZeroDivisionError: division by zero",
    ]
    command = page.locator(".logfoot .cmd code").inner_text()
    assert command.strip() == f"det trial logs {trial} --level ERROR"
    printed = cluster.det(*command.split()[1:]).stdout
    assert printed.startswith(text)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_everybody_can_read_it(page, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make setup")
    page.emulate_media(color_scheme=scheme)
    see(page, "lost rank 1")
    assert violations(page) == {}
    page.get_by_label("Search in the log").fill("a")
    page.keyboard.press("Enter")
    expect(page.locator("mark").first).to_be_visible()
    assert violations(page) == {}


def test_the_tail_keeps_its_place_and_counts_what_has_come(cluster, signed_in, tmp_path):
    (tmp_path / "writes.py").write_text(TALKS)
    (tmp_path / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", tmp_path)
    trial = cluster.first_trial(id)
    page = signed_in(cluster)
    page.goto(f"/det/experiments/{id}/trials/{trial}/logs")
    status = page.locator(".logfoot [role=status]")
    expect(status).to_contain_text("following")
    see(page, "tick 5")
    page.locator(".log").hover()
    # A little is enough: new lines come faster than a hand turns the wheel.
    page.mouse.wheel(0, -40)
    expect(status).to_contain_text("not following")
    wheel(page, -2000)
    page.get_by_role("button", name=re.compile(r"\d+ new lines?")).wait_for()
    before = in_view(page)
    wait_for(lambda: int(page.locator(".came").inner_text().split()[0]) > 15, 60, "further lines")
    assert in_view(page) == before
    page.locator(".came").click()
    expect(page.locator(".came")).to_have_count(0)
    expect(status).to_contain_text("following")
    texts = lines(page).locator(".text").all_inner_texts()
    ticks = [int(text.split()[1]) for text in texts if text.startswith("tick")]
    # The newest, without a gap.
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
    assert len(ticks) > 15
    cluster.api("POST", f"experiments/{id}/kill")
    expect(status).not_to_contain_text("following")

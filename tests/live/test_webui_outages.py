"""The web UI of a new cluster, whose gateway and broker then go away: a cluster of its own."""

import os
import re
import shutil
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

from tests.fixtures.browser import MARKS, SECONDS, violations
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
EXAMPLES = Path(__file__).parents[2] / "examples" / "core_api"
# What pages show is told to be old long before the gateway counts as ill.
PLAN = {"slots": 2, "settings": {"STEADFAST_LOG_LAGS_S": "3600"}}
expect = playwright.expect
pytestmark = MARKS


@pytest.fixture
def cluster(module_cluster):
    return module_cluster


@pytest.fixture
def page(cluster, signed_in):
    """Signed in, on the dashboard."""
    page = signed_in(cluster)
    expect.set_options(timeout=60 * SECONDS)
    page.goto("/")
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    return page


@pytest.fixture
def examples(tmp_path):
    return shutil.copytree(EXAMPLES, tmp_path / "core_api")


@pytest.mark.full
def test_an_experiment_appears_runs_and_is_drawn_without_a_reload(cluster, page, examples):
    expect(page.get_by_text("Run your first experiment")).to_be_visible()
    cluster.create("1_metrics.yaml", examples)
    row = page.get_by_role("row", name=re.compile("stage-1-metrics"))
    expect(row).to_be_visible()
    row.get_by_role("link", name="stage-1-metrics").click()
    chart = page.get_by_role("figure", name="weight")
    expect(chart.locator("canvas")).to_be_visible()
    expect(page.locator(".head .state")).to_contain_text("COMPLETED")
    chart.get_by_role("button", name="Options of weight").click()
    page.get_by_role("menuitem", name="As table").click()
    expect(chart.get_by_role("row", name=re.compile("validation 50 50"))).to_be_visible()


@pytest.mark.full
def test_pages_come_back_when_the_gateway_was_away(cluster, page, examples):
    cluster.kill("gateway")
    cluster.get("me")
    cluster.create("1_metrics.yaml", examples, "--config", "name=after-the-gateway")
    expect(page.get_by_role("row", name=re.compile("after-the-gateway"))).to_be_visible(timeout=60 * SECONDS)


def test_what_is_fetched_later_may_fail_and_the_page_stays(cluster, signed_in):
    page = signed_in(cluster)
    page.route(re.compile(r"/assets/(overlay|palette)-"), lambda route: route.abort())
    failing = re.compile(r"/assets/overlay-")
    with page.expect_event(
        "requestfailed", lambda request: failing.search(request.url), timeout=60 * SECONDS
    ):
        page.goto("/")
    heading = page.get_by_role("heading", name="Dashboard")
    expect(heading).to_be_visible(timeout=60 * SECONDS)
    page.keyboard.press("Control+k")
    # The gateway answers, so this is no outage: after some attempts it is told of.
    expect(page.get_by_role("alert")).to_contain_text("could not be shown", timeout=60 * SECONDS)
    expect(heading).to_be_visible()


def test_whoever_goes_somewhere_by_keyboard_before_tips_are_loaded_sees_its_tip(cluster, signed_in):
    page, held = signed_in(cluster), []
    overlay = re.compile(r"/assets/overlay-")
    page.route(overlay, lambda route: held.append(route))
    with page.expect_request(overlay, timeout=60 * SECONDS):
        page.goto("/")
    button = page.get_by_role("button", name="Theme", exact=True)
    button.focus()
    for route in held:
        route.continue_()
    expect(page.locator(".tip-box")).to_contain_text(button.get_attribute("data-tip"), timeout=60 * SECONDS)


def test_the_list_goes_on_when_broker_and_gateway_were_away(cluster, page, examples):
    cluster.create("1_metrics.yaml", examples)
    page.goto("/det/experiments")
    expect(page.locator("tr[data-id]").first).to_be_visible()
    cluster.kill("broker")
    # Away until the page has said so.
    cluster.stop("gateway")
    expect(page.get_by_text("reconnecting")).to_be_visible(timeout=60 * SECONDS)
    cluster.start("gateway")
    cluster.get("me")
    cluster.create("1_metrics.yaml", examples, "--config", "name=after-the-fall")
    expect(page.get_by_role("row", name=re.compile("after-the-fall"))).to_be_visible(timeout=60 * SECONDS)
    expect(page.get_by_text("reconnecting")).to_have_count(0, timeout=60 * SECONDS)


@pytest.mark.full
def test_a_page_that_is_opened_while_the_gateway_is_away_comes_when_it_is_back(cluster, page):
    cluster.stop("gateway")
    # Its script was never fetched.
    page.get_by_role("link", name="Agents", exact=True).first.click()
    expect(page.get_by_role("alert")).to_contain_text("The gateway", timeout=60 * SECONDS)
    expect(page.get_by_text("This page could not be shown")).to_have_count(0)
    cluster.start("gateway")
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible(timeout=60 * SECONDS)
    expect(page).to_have_url(re.compile("/det/clusters"))
    expect(page.get_by_role("alert")).to_have_count(0, timeout=60 * SECONDS)


@pytest.mark.full
def test_every_page_says_what_is_wrong_and_since_when_for_as_long_as_it_is(cluster, page):
    banner = page.get_by_role("status", name="Health of the cluster")
    expect(banner).to_have_count(0)
    os.kill(cluster.pid("searcher"), signal.SIGSTOP)
    try:
        expect(banner).to_contain_text("The cluster is not making decisions", timeout=60 * SECONDS)
        expect(banner).to_contain_text(re.compile(r"No searcher replica leads, since \d+:\d\d:\d\d"))
        for place in ("clusters", "experiments", "login"):
            page.goto(f"/det/{place}")
            expect(banner).to_contain_text("No searcher replica leads", timeout=60 * SECONDS)
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        assert violations(page) == {}
    finally:
        os.kill(cluster.pid("searcher"), signal.SIGCONT)
    expect(banner).to_have_count(0, timeout=60 * SECONDS)


def test_the_page_shows_that_the_gateway_hangs(cluster, page):
    notice = page.get_by_text(re.compile(r"The gateway has not answered since \d+:\d\d"))
    os.kill(cluster.pid("gateway"), signal.SIGSTOP)
    try:
        expect(notice).to_be_visible(timeout=60 * SECONDS)
        expect(page.get_by_text(re.compile(r"This page shows data from \d+:\d\d"))).to_be_visible()
        assert violations(page) == {}
    finally:
        os.kill(cluster.pid("gateway"), signal.SIGCONT)
    expect(notice).to_have_count(0, timeout=60 * SECONDS)


def test_a_gateway_that_cannot_save_what_it_reads_says_that_its_data_is_old(cluster, page):
    """Lists come from its database, so they stand still until it is free again."""
    id = cluster.submit("import time; time.sleep(600)", name="before")
    database = sqlite3.connect(cluster.home.path / "databases" / "gateway.db", isolation_level=None)
    old = page.get_by_text(re.compile(r"Data of \d+:\d\d:\d\d, catching up"))
    expect(old).to_have_count(0)
    database.execute("BEGIN IMMEDIATE")
    # It is answered once it is saved.
    pausing = threading.Thread(target=cluster.tell, args=(id, "pause"))
    pausing.start()
    try:
        expect(old).to_be_visible(timeout=60 * SECONDS)
        assert cluster.get("master/health")["status"] == "up"
        page.goto("/det/clusters")
        expect(old).to_be_visible(timeout=60 * SECONDS)
    finally:
        database.execute("ROLLBACK")
        database.close()
        pausing.join(60)
    expect(old).to_have_count(0, timeout=60 * SECONDS)

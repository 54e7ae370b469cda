"""Who did what, on a page of its own."""

import pytest
import requests

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS
MADE = 60


@pytest.fixture
def page(cluster, browser):
    """Signed in as an administrator, after somebody has made many workspaces."""
    login = {"username": "admin", "password": ""}
    with requests.Session() as session:
        answer = session.post(f"{cluster.address}/api/v1/auth/login", json=login, timeout=60)
        session.headers["Authorization"] = f"Bearer {answer.json()['token']}"
        for number in range(MADE):
            body = {"name": f"audited {number}"}
            made = session.post(f"{cluster.address}/api/v1/workspaces", json=body, timeout=60)
            if not made.ok:
                assert made.status_code == 409, made.text
    context = browser.new_context(base_url=cluster.address, viewport={"width": 1280, "height": 850})
    context.set_default_timeout(60 * SECONDS)
    expect.set_options(timeout=60 * SECONDS)
    page = context.new_page()
    page.goto("/det/system/events")
    page.get_by_label("User").fill("admin")
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Views").get_by_role("button", name="Audit").click()
    expect(page.get_by_role("heading", name="Audit")).to_be_visible()
    yield page
    context.close()


def test_one_finds_who_did_what(page):
    table = page.get_by_role("table", name="Audit")
    expect(table).to_contain_text("admin")
    page.get_by_role("combobox", name="user").select_option("admin")
    page.get_by_label("kind").select_option("workspaces")
    expect(table.get_by_role("row")).to_have_count(51)
    expect(table.locator("tbody tr").first).to_contain_text(f"Workspace 'audited {MADE - 1}'")
    page.get_by_role("button", name="Older").click()
    expect(table).to_contain_text("Workspace 'audited 9'")
    expect(table).not_to_contain_text(f"Workspace 'audited {MADE - 1}'")
    # The address holds what is looked at.
    page.reload()
    expect(table).to_contain_text("Workspace 'audited 9'")
    page.get_by_role("button", name="Newest").click()
    expect(table).to_contain_text(f"Workspace 'audited {MADE - 1}'")
    page.get_by_label("until").fill("2001-01-01T00:00")
    expect(page.get_by_text("No matches.")).to_be_visible()


@pytest.mark.full
def test_all_of_it_is_taken_away(page):
    page.get_by_label("kind").select_option("logins and log-outs")
    expect(page.get_by_role("table", name="Audit")).to_contain_text("Logged in from")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export all as CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0] == "position,time,username,event,about,what,reason"
    assert all("gateway.session" in line for line in lines[1:])


PARKED = {
    "unreadable": [],
    "more": False,
    "parked": [
        {
            "condition": "decisions_parked",
            "about": "experiment 7",
            "program": "searcher",
            "message": "nothing can be decided about experiment 7",
            "since": "2026-11-20T12:00:00.000Z",
            "action": "report it",
        }
    ],
}


STANDING = {
    "program": "searcher",
    "stream": "CONTROL",
    "position": 41,
    "subject": "control.trial.7.progressed",
    "error": "KeyError(7)",
    "since": "2026-11-20T12:00:00.000Z",
    "action": "report it",
}


@pytest.mark.full
def test_an_operator_has_a_service_skip_the_event_at_which_it_stands_still(page):
    # No command makes a service stand still; what the gateway answers to a skip has tests of its own.
    page.route("**/api/v1/master/parked", lambda route: route.fulfill(json=PARKED | {"standing": [STANDING]}))
    requests = []

    def skip(route):
        requests.append(route.request.post_data_json)
        route.fulfill(json={})

    page.route("**/api/v1/master/parked/skip", skip)
    page.goto("/det/system/events?view=health")
    row = page.get_by_role("table", name="Services that stand still").get_by_role("row", name="searcher")
    expect(row).to_contain_text("41 of CONTROL")
    expect(row).to_contain_text("KeyError(7)")
    row.get_by_role("button", name="Skip").click()
    dialog = page.get_by_role("dialog", name="Skip event 41 of CONTROL?")
    expect(dialog).to_contain_text("Whatever the event changes is lost for this service")
    dialog.get_by_role("button", name="Skip the event").click()
    # The reason is required.
    expect(dialog).to_be_visible()
    assert requests == []
    dialog.get_by_label("Reason").fill("bug 45")
    dialog.get_by_role("button", name="Skip the event").click()
    expect(page.get_by_text("The searcher skips event 41 and continues")).to_be_visible()
    expect(dialog).to_be_hidden()
    assert requests == [{"program": "searcher", "stream": "CONTROL", "position": 41, "reason": "bug 45"}]


@pytest.mark.full
def test_an_operator_has_a_database_rebuilt_and_sees_how_far_that_is(page):
    # The cluster is shared: tests/full/test_rebuild.py rebuilds databases in one of its own.
    requests = []

    def rebuild(route):
        if route.request.method == "POST":
            requests.append(route.request.post_data_json)
            route.fulfill(json={})
        else:
            progress = "event 7 of 41" if requests else ""
            route.fulfill(json={"programs": [{"program": "searcher", "progress": progress}]})

    page.route("**/api/v1/master/rebuild", rebuild)
    page.goto("/det/system/events?view=health")
    row = page.get_by_role("table", name="Databases").get_by_role("row", name="searcher")
    row.get_by_role("button", name="Rebuild").click()
    dialog = page.get_by_role("alertdialog").or_(page.get_by_role("dialog"))
    expect(dialog).to_contain_text("Until it is done, it decides and answers nothing")
    dialog.get_by_role("button", name="Rebuild").click()
    expect(row).to_contain_text("event 7 of 41")
    expect(row.get_by_role("button", name="Rebuild")).to_be_disabled()
    assert requests == [{"program": "searcher"}]


@pytest.mark.full
def test_an_operator_has_a_service_look_again_at_what_it_parked(page):
    # What is parked is a fault that no command brings about; asking again is the real thing.
    page.route("**/api/v1/master/parked", lambda route: route.fulfill(json=PARKED))
    page.goto("/det/system/events?view=health")
    row = page.get_by_role("table", name="Parked decisions").get_by_role("row", name="experiment 7")
    row.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("The searcher retries what it parked")).to_be_visible()
    page.goto("/det/system/audit?user=admin")
    table = page.get_by_role("table", name="Audit")
    expect(table).to_contain_text("The searcher was to retry its parked records")

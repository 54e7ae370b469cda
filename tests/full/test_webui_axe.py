"""Everybody can use every page, dialog, menu and drawer: WCAG 2.2 A and AA checked by axe, in both themes."""

import re

import pytest

from tests.fixtures.browser import AXE, MARKS, SECONDS, show
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.full.test_webui_keyboard import OPENED
from tests.full.test_webui_keyboard import search as search

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = [*MARKS, pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make setup")]

RUN = """
axe.run(
  // They hold no focus: whatever comes there is led on at once, into the menu or behind it.
  { exclude: [["[data-base-ui-focus-guard]"]] },
  { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] },
).then(({ violations }) => violations)
"""
PAGES = (
    "/projects/1/experiments",
    "/experiments?g=projectId&heat=1",
    "/experiments/{id}/trials/{trial}/hyperparameters",
    "/experiments/{id}/trials/{trial}/checkpoints",
    "/experiments/{id}/trials/{trial}/logs",
    "/experiments/{id}/trials/{trial}/story",
    "/experiments/{id}/hyperparameters?v=curves",
    "/experiments/{id}/hyperparameters?v=table",
    "/experiments/new?from={id}",
    "/experiments/compare?e={id}&v=details",
    "/experiments/compare?e={id}&v=parallel",
    "/models/looked-at",
    "/workspaces",
    "/workspaces/1",
    "/settings/webhooks",
    "/system/events",
    "/system/audit",
    "/system/components",
)
"""Those that `tests/live/test_webui.py` does not go through."""
DRAWERS = ("/experiments/{id}/checkpoints", "/clusters", "/models/looked-at")
FOR_ADMINISTRATORS = (
    ("/settings/users", "Add user"),
    ("/settings/groups", "New group"),
    ("/settings/quotas", "New quota"),
    ("/settings/webhooks", "New webhook"),
    ("/workspaces", "New workspace"),
)
FROM_ANYWHERE = {"Control+k": "Search or jump to", "?": "Keys"}


@pytest.fixture(params=["light", "dark"])
def page(shared_cluster, signed_in, request):
    """Of an administrator, who sees everything."""
    page = signed_in(shared_cluster, "admin")
    page.emulate_media(color_scheme=request.param, reduced_motion="reduce")
    expect.set_options(timeout=60 * SECONDS)
    return page


@pytest.fixture(scope="module")
def model(shared_cluster, search):
    """With a version: the best checkpoint of the search, which is not among those that go when it ends."""
    shared_cluster.api("POST", "models", json={"name": "looked-at", "labels": ["digits"]})
    best = shared_cluster.experiment(search[0])["bestTrialId"]
    checkpoint = shared_cluster.get(f"trials/{best}")["trial"]["bestCheckpoint"]["uuid"]
    shared_cluster.api("POST", "models/looked-at/versions", json={"checkpointUuid": checkpoint})


def violations(page):
    """The rules that are broken, each with its first places."""
    page.evaluate(AXE.read_text())
    return {
        broken["id"]: [node["html"][:160] for node in broken["nodes"][:3]] for broken in page.evaluate(RUN)
    }


def test_pages(page, search, model):
    faults = {}
    for path in PAGES:
        show(page, path.format(id=search[0], trial=search[1]))
        if broken := violations(page):
            faults[path] = broken
    assert faults == {}


def test_what_opens_over_a_page(page, search, model):
    faults = {}
    for path, name in (*OPENED, *FOR_ADMINISTRATORS):
        show(page, path.format(id=search[0]))
        page.locator("main").get_by_role("button", name=re.compile(name)).first.click()
        expect(page.locator("[role=dialog]:visible, [role=menu]:visible").first).to_be_visible()
        if broken := violations(page):
            faults[f"{path}, {name}"] = broken
    assert faults == {}


def test_drawers(page, search, model):
    faults = {}
    for path in DRAWERS:
        show(page, path.format(id=search[0]))
        page.locator("tr[data-row] .as-link").first.click()
        expect(page.locator(".drawer")).to_be_visible()
        if broken := violations(page):
            faults[path] = broken
    assert faults == {}


@pytest.mark.parametrize("key", FROM_ANYWHERE)
def test_what_a_key_opens(page, key):
    show(page, "/dashboard")
    page.locator("h1").click()
    page.keyboard.press(key)
    expect(page.get_by_role("dialog", name=FROM_ANYWHERE[key])).to_be_visible()
    assert violations(page) == {}

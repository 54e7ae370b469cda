"""Groups on the page of settings, and the roles of a workspace on its page."""

import uuid

import pytest
import requests

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS


@pytest.fixture
def admin(cluster):
    """Asks as an administrator."""
    session = requests.Session()
    login = {"username": "admin", "password": ""}
    answer = session.post(f"{cluster.address}/api/v1/auth/login", json=login, timeout=60)
    session.headers["Authorization"] = f"Bearer {answer.json()['token']}"
    yield session
    session.close()


@pytest.fixture
def page(cluster, signed_in):
    """Signed in as an administrator."""
    expect.set_options(timeout=60 * SECONDS)
    return signed_in(cluster, "admin")


@pytest.mark.full
def test_a_group_is_filled_given_a_role_and_removed(cluster, admin, page):
    group, space = f"crew {uuid.uuid4().hex[:8]}", f"space {uuid.uuid4().hex[:8]}"
    made = admin.post(f"{cluster.address}/api/v1/workspaces", json={"name": space}, timeout=60)
    workspace = made.json()["workspace"]["id"]
    page.goto("/det/settings/groups")
    page.get_by_role("button", name="New group").click()
    page.get_by_label("Name").fill(group)
    page.get_by_label("Name").press("Enter")
    row = page.get_by_role("table", name="Groups").get_by_role("row", name=group)
    expect(row).to_be_visible()
    row.get_by_role("button", name="Members").click()
    page.locator(".dialog select[name=user]").select_option(label="determined")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("button", name="Remove determined")).to_be_visible()
    page.keyboard.press("Escape")
    expect(row).to_contain_text("1")

    page.goto(f"/det/workspaces/{workspace}")
    page.get_by_role("button", name="Assign a role").click()
    page.locator(".dialog select[name=who]").select_option(label=f"group {group}")
    page.locator(".dialog select[name=role]").select_option(label="Editor")
    page.get_by_role("button", name="Assign", exact=True).click()
    given = page.get_by_role("table", name="Roles in this workspace").get_by_role("row", name=group)
    expect(given).to_contain_text("Editor")
    given.get_by_role("button", name="Revoke").click()
    expect(given).to_have_count(0)

    page.goto("/det/settings/groups")
    row.get_by_role("button", name=f"Actions of {group}").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    admin.delete(f"{cluster.address}/api/v1/workspaces/{workspace}", timeout=60)

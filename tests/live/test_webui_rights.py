"""Groups on the page of settings, and the roles of a workspace on its page."""

import re
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
    role_row = page.get_by_role("table", name="Roles in this workspace").get_by_role("row", name=group)
    expect(role_row).to_contain_text("Editor")
    role_row.get_by_role("button", name="Revoke").click()
    expect(role_row).to_have_count(0)

    page.goto("/det/settings/groups")
    row.get_by_role("button", name=f"Actions of {group}").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    admin.delete(f"{cluster.address}/api/v1/workspaces/{workspace}", timeout=60)


def test_what_a_user_may_not_do_is_held_back_with_the_reason_everywhere(cluster, admin, signed_in):
    expect.set_options(timeout=60 * SECONDS)
    bob = f"bob-{uuid.uuid4().hex[:8]}"
    made = {"user": {"username": bob, "active": True}}
    admin.post(f"{cluster.address}/api/v1/users", json=made, timeout=60).raise_for_status()
    id = cluster.submit("import time; time.sleep(600)", name=f"of another {uuid.uuid4().hex[:8]}")
    only = "Only determined and administrators may"
    page = signed_in(cluster, bob)
    page.goto(f"/det/experiments/{id}/overview")
    pause = page.get_by_role("button", name="Pause", exact=True)
    expect(pause).to_be_disabled()
    expect(pause).to_have_attribute("data-tip", only)
    pause.focus()
    expect(page.locator(".tip-box")).to_contain_text(only)
    page.keyboard.press("Enter")
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Fork", exact=True)).to_be_enabled()
    page.get_by_role("button", name="More actions").click()
    for name in ("Kill", "Move to a project", "Stop after this batch"):
        expect(page.get_by_role("menuitem", name=name)).to_be_disabled()
    page.keyboard.press("Escape")
    page.goto("/det/jobs")
    page.get_by_role("button", name=re.compile(rf"^Actions of .*\b{id}\b")).click()
    expect(page.get_by_role("menuitem", name="Kill")).to_be_disabled()
    page.goto("/det/experiments")
    page.get_by_role("button", name=re.compile(rf"^Actions of .*\b{id}\b")).click()
    expect(page.get_by_role("menuitem", name="Pause")).to_be_disabled()
    page.goto("/det/settings/users")
    expect(page.get_by_role("button", name="Add user")).to_be_disabled()
    assert cluster.experiment(id)["state"] not in ("STATE_PAUSED", "STATE_CANCELED")

    person = next(user for user in cluster.get("users")["users"] if user["username"] == bob)
    path = f"{cluster.address}/api/v1/users/{person['id']}"
    admin.patch(path, json={"admin": True}, timeout=60).raise_for_status()
    expect(page.get_by_role("button", name="Add user")).to_be_enabled()

"""Sessions and API tokens on the page of settings."""

import pytest
import requests

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS


@pytest.fixture
def page(cluster, browser):
    """Signed in, on the page of settings."""
    context = browser.new_context(base_url=cluster.address, viewport={"width": 1280, "height": 850})
    context.set_default_timeout(60 * SECONDS)
    expect.set_options(timeout=60 * SECONDS)
    page = context.new_page()
    page.goto("/det/settings")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    yield page
    context.close()


def status(cluster, token):
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{cluster.address}/api/v1/me", headers=headers, timeout=60).status_code


def test_an_api_token_is_made_shown_once_and_revoked(cluster, page):
    page.get_by_role("link", name="API tokens").click()
    page.get_by_role("button", name="New API token").click()
    page.get_by_label("Purpose").fill("from the page")
    page.get_by_label("Permissions").select_option("read")
    page.get_by_role("button", name="Create token").click()
    shown = page.locator(".dialog .copyable code")
    expect(shown).to_be_visible()
    token = shown.inner_text()
    assert token.startswith("sft_")
    assert status(cluster, token) == 200
    page.keyboard.press("Escape")
    row = page.get_by_role("table", name="API tokens").get_by_role("row", name="from the page")
    expect(row).to_contain_text("look only")
    assert token not in page.content()
    row.get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    assert status(cluster, token) == 401


@pytest.mark.full
def test_one_logs_out_elsewhere_from_here(cluster, page):
    page.get_by_role("link", name="Sessions").click()
    sessions = page.get_by_role("table", name="Sessions")
    expect(sessions).to_contain_text("this one")
    login = {"username": "determined", "password": ""}
    answer = requests.post(
        f"{cluster.address}/api/v1/auth/login", json=login, headers={"User-Agent": "a lost phone"}, timeout=60
    )
    token = answer.json()["token"]
    row = sessions.get_by_role("row", name="a lost phone")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Log out there").click()
    expect(row).to_have_count(0)
    assert status(cluster, token) == 401

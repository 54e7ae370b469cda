"""The button of the sign-in page, in a browser: what it keeps and sends along on the way there and back."""

import pytest

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.gateway.test_oidc_process import gateway as gateway
from tests.gateway.test_oidc_process import provider as provider

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS


@pytest.mark.full
def test_the_button_leads_to_the_provider_and_back_to_the_page(gateway, browser):
    context = browser.new_context(base_url=str(gateway.client.base_url))
    context.set_default_timeout(60 * SECONDS)
    expect.set_options(timeout=60 * SECONDS)
    page = context.new_page()
    page.goto("/det/workspaces")
    page.get_by_role("link", name="Sign in with Single sign-on").click()
    page.get_by_role("button", name="s-1").click()
    expect(page.get_by_role("heading", name="Workspaces")).to_be_visible()
    expect(page.get_by_role("button", name="Account of Ann")).to_be_visible()
    assert {cookie["name"] for cookie in context.cookies()} == {"auth"}
    context.close()


@pytest.mark.full
def test_a_page_leads_to_the_sign_in_once_its_session_has_ended_elsewhere(cluster, signed_in):
    """As after a sign-out in another tab: the page learns of it when it asks for something."""
    expect.set_options(timeout=60 * SECONDS)
    page = signed_in(cluster)
    page.goto("/det/experiments")
    expect(page.get_by_role("heading", name="Experiments", exact=True)).to_be_visible()
    page.context.clear_cookies()
    page.get_by_role("link", name="Agents", exact=True).first.click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(page.get_by_text("Your session has expired")).to_be_visible()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()

"""A browser for benchmarks, signed in to a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.fixtures.chromium import CHROMIUM

if TYPE_CHECKING:
    from playwright.sync_api import Page


@contextlib.contextmanager
def signed_in(address: str) -> Iterator[Page]:
    """A page on the dashboard, for the length of a `with`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 850})
            page.goto("/")
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/dashboard")
            yield page
        finally:
            browser.close()

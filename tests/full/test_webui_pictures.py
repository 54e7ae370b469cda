"""Pages look as they did: those of constant content, in both themes, on a desk and on a phone."""

import re

import pytest

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.pictures import REVIEW, TAKE, compare

pytestmark = MARKS
NOON = "2026-11-20T12:00:00"
NOTHING = {
    "experiments-search": {
        "experiments": [],
        "pagination": {"total": 0, "offset": 0, "limit": 15, "startIndex": 0},
    },
    "job-queues": {"jobs": []},
    "cluster/usage": {"usage": []},
    "resource-pools": {"resourcePools": []},
}
PLACES = {
    "first-start": "/dashboard",
    "components": "/system/components",
    "nothing-here": "/nothing/is/here",
    "keys": "/settings/keys",
    "appearance": "/settings/appearance",
}
WIDTHS = {1440: 900, 390: 844}


def answered_by(answer):
    return lambda route: route.fulfill(json=answer)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_look_as_they_did(cluster, browser, scheme, width):
    context = browser.new_context(
        base_url=cluster.address,
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=scheme,
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    page = context.new_page()
    page.set_default_timeout(60 * SECONDS)
    page.clock.set_fixed_time(NOON)
    for path, answer in NOTHING.items():
        page.route(re.compile(f"/api/v1/{path}"), answered_by(answer))
    wrong = []

    def look(name, element):
        page.wait_for_function("document.fonts.status === 'loaded'")
        masks = [page.locator(".first-steps .copyable code")]
        picture = page.locator(element).screenshot(animations="disabled", mask=masks, mask_color="#888888")
        wrong.append(compare(page, f"{name}-{scheme}-{width}", picture))

    page.goto("/det/login")
    page.get_by_role("button", name="Sign in").wait_for()
    look("sign-in", "body")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/det/dashboard"))
    for name, path in PLACES.items():
        page.goto(f"/det{path}")
        page.locator("main h1, main h2").first.wait_for()
        if name != "components":
            # They have one of their own.
            page.wait_for_selector(".skeleton", state="detached")
        look(name, "main")
    context.close()
    differences = "\n".join(filter(None, wrong))
    assert not differences, (
        f"{differences}\nlook at {REVIEW}/index.html; where it is meant to be so, keep them: {TAKE}=1"
    )

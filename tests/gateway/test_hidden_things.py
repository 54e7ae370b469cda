"""What is hidden and what is not there are answered alike, whatever is asked of it and however badly."""

import re

from services.kit.authz.needs import PARAMETER
from tests.gateway.strangers import path_of
from tests.gateway.test_strangers_by_role import ROWS
from tests.gateway.test_strangers_by_role import world as world

MISSING = {
    "workspace": "99", "project": "99", "experiment": "99", "trial": "99", "task": "99.r1", "page": "99.r1",
    "run": "99.r1.1", "checkpoint": "00000000-0000-4000-8000-000000000000", "model": "nonesuch",
}  # fmt: skip
ROUTES = [route for route, row in ROWS.items() if row.kind in MISSING and row.permission != "anybody"]


def path_of_missing(template, kind):
    names = "|".join(PARAMETER[kind])
    return path_of(re.sub(rf"{{({names})(:\w+)?}}", MISSING[kind], template, count=1))


def answers(world, visitor, method, path):
    """The status and the text, in which what is named stands for any other."""
    headers = {"Authorization": f"Bearer {world.tokens[visitor]}"}
    answer = world.send(method, path, {} if method != "GET" else None, headers=headers)
    return answer.status_code, re.sub(r"'[^']*'", "'...'", answer.text)


def test_nobody_learns_whether_there_is_something_that_they_may_not_see(world):
    differences, hidden_ones = {}, 0
    for method, template in ROUTES:
        hidden = answers(world, "egon", method, path_of(template))
        missing = answers(world, "egon", method, path_of_missing(template, ROWS[method, template].kind))
        hidden_ones += hidden[0] == 404
        if hidden[0] == 404 and hidden != missing:
            differences[method, template] = hidden, missing
    assert differences == {}
    assert hidden_ones > 100

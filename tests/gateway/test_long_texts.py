"""What people call things has a limit, and a refusal says which; nothing of it is kept."""

import pytest

from det_contracts.limits import PAGE_CHARACTERS, TEXT_CHARACTERS, TITLE_CHARACTERS

TITLE, TEXT, PAGE = (most * "x" for most in (TITLE_CHARACTERS + 1, TEXT_CHARACTERS + 1, PAGE_CHARACTERS + 1))
LONG = [
    ("POST", "/api/v1/workspaces", {"name": TITLE}, "name"),
    ("POST", "/api/v1/workspaces/1/projects", {"name": "p", "description": TEXT}, "description"),
    ("PUT", "/api/v1/projects/2/notes", {"notes": [{"name": "n", "contents": PAGE}]}, "contents"),
    ("POST", "/api/v1/users", {"user": {"username": TITLE, "admin": False, "active": True}}, "username"),
    ("PATCH", "/api/v1/users/2", {"displayName": TITLE}, "display_name"),
    ("POST", "/api/v1/groups", {"name": TITLE}, "name"),
    ("POST", "/api/v1/tokens", {"name": TITLE, "userId": 1}, "name"),
    ("PUT", "/api/v1/templates/t", {"name": "t", "config": {"description": TEXT}}, "description"),
    (
        "POST",
        "/api/v1/users/setting",
        {"settings": [{"storagePath": "a", "key": "k", "value": PAGE}]},
        "value",
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "field"), LONG, ids=[path for _, path, _, _ in LONG])
def test_a_text_that_is_too_long_is_refused_with_its_field(gateway, method, path, body, field):
    gateway.log_in("admin")
    if path == "/api/v1/projects/2/notes":
        gateway.post("/api/v1/workspaces", {"name": "w"})
        gateway.post("/api/v1/workspaces/2/projects", {"name": "p"})
    before = len(gateway.journal.streams["CONTROL"])
    message = gateway.refused(400, method, path, body)
    assert f"{field} has" in message
    assert "are taken" in message
    assert TITLE not in message
    assert len(gateway.journal.streams["CONTROL"]) == before


LOOKED_FOR = [
    ("GET", "/api/v1/experiments?name={text}", None, "name"),
    ("GET", "/api/v1/experiments?description={text}", None, "description"),
    ("GET", "/api/v1/experiments?labels={text}", None, "labels"),
    ("GET", "/api/v1/master/audit?event={text}", None, "event"),
    ("GET", "/api/v1/master/audit/export?event={text}", None, "event"),
    ("POST", "/api/v1/experiments/archive", {"filters": {"name": 60_000 * "%"}}, "name"),
]


@pytest.mark.parametrize(("method", "path", "body", "field"), LOOKED_FOR)
def test_a_text_that_no_database_could_look_for_is_refused(gateway, method, path, body, field):
    gateway.log_in("admin")
    message = gateway.refused(400, method, path.format(text=60_000 * "x"), body)
    assert f"{field} has 60,000 characters" in message


@pytest.mark.parametrize("name", ["name", "description", "labels"])
@pytest.mark.parametrize("character", ["%", "\\", "\U0001f600", "\x01"])
def test_the_longest_text_that_is_taken_can_be_looked_for(gateway, name, character):
    longest = {name: TITLE_CHARACTERS * character}
    assert gateway.get("/api/v1/experiments", **longest)["experiments"] == []

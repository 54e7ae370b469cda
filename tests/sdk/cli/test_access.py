"""`det token`, and the verbs of sessions."""

import json

import pytest

ME = {"user": {"id": 2, "username": "determined"}}
TOKEN = {
    "id": "t1", "userId": 2, "name": "ci", "scope": "read",
    "createdAt": "2026-01-01T00:00:00Z", "expiry": "2026-02-01T00:00:00Z",
}  # fmt: skip
SESSION = {
    "id": "s1", "userId": 2, "openedAt": "2026-01-01T00:00:00Z", "expiresAt": "2026-01-08T00:00:00Z",
    "address": "10.0.0.1", "client": "curl", "current": False,
}  # fmt: skip


@pytest.fixture
def people(master):
    master.answer("GET", "/api/v1/me", ME)
    master.answer("GET", "/api/v1/users/ann/by-username", {"user": {"id": 7, "username": "ann"}})
    master.answer("GET", "/api/v1/tokens", {"tokenInfo": [TOKEN]})
    master.answer("POST", "/api/v1/tokens", {"token": "sft_secret", "tokenInfo": TOKEN})
    for id in (2, 7):
        master.answer("GET", f"/api/v1/users/{id}/sessions", {"sessions": [SESSION]})
        master.answer("DELETE", f"/api/v1/users/{id}/sessions", {"revoked": 3})
        master.answer("DELETE", f"/api/v1/users/{id}/sessions/s1", {})
    master.answer("DELETE", "/api/v1/tokens/t1", {})
    return master


def test_a_new_token_is_all_of_stdout(people, det):
    result = det("token", "create", "ci", "--read-only", "--lifespan", "12h")
    assert (result.status, result.out) == (0, "sft_secret\n")
    assert "2026-02-01" in result.err
    assert people.calls_to("POST", "/api/v1/tokens")[0].json == {
        "name": "ci",
        "scope": "read",
        "lifespan": "12h",
    }


def test_a_token_is_unrestricted_for_a_month_by_default(people, det):
    assert det("token", "create", "ci").status == 0
    assert people.calls_to("POST", "/api/v1/tokens")[0].json == {
        "name": "ci",
        "scope": "all",
        "lifespan": "30d",
    }


def test_tokens_are_listed(people, det):
    assert [word in det("token").out for word in ("t1", "ci", "read", "2026-02-01")] == [True] * 4
    assert json.loads(det("token", "list", "--json").out) == [TOKEN]
    det("token", "list", "--user", "ann")
    assert people.calls_to("GET", "/api/v1/tokens")[-1].query == {"username": ["ann"]}


@pytest.mark.parametrize("named", ["t1", "ci"])
def test_a_token_is_revoked_by_its_id_or_name(people, det, named):
    assert det("token", "revoke", named).out == f"Revoked token '{named}'\n"
    assert len(people.calls_to("DELETE", "/api/v1/tokens/t1")) == 1


def test_an_unknown_token_is_reported(people, det):
    result = det("token", "revoke", "none")
    assert (result.status, "no token 'none'" in result.err) == (1, True)


def test_sessions_are_listed_and_ended(people, det):
    assert [word in det("user", "sessions").out for word in ("s1", "10.0.0.1", "curl")] == [True] * 3
    assert json.loads(det("user", "sessions", "--json").out) == [SESSION]
    assert det("user", "revoke-session", "s1").out == "Revoked session s1\n"
    assert det("user", "revoke-session", "--all", "--user", "ann").out == "Revoked 3 sessions\n"
    assert len(people.calls_to("DELETE", "/api/v1/users/7/sessions")) == 1
    assert det("user", "revoke-session").status == 1

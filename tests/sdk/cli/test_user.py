from __future__ import annotations

import io

import pytest

from determined.transport import identity
from determined.transport.token_store import TokenStore
from tests.sdk.fake_gateway import Status

LOGIN = "/api/v1/auth/login"


@pytest.fixture
def store(master):
    master.answer("POST", LOGIN, lambda call: {"token": f"token of {call.json['username']}"})
    master.answer("POST", "/api/v1/auth/logout", {})
    return TokenStore(master.url)


@pytest.fixture
def typed(monkeypatch):
    def type_in(text):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return type_in


def test_login_asks_and_activates(master, det, store, typed):
    typed("secret\n")
    result = det("user", "login", "ann")
    assert result.status == 0
    assert result.err == "Password for user 'ann': "
    assert master.calls_to("POST", LOGIN)[0].json == {
        "username": "ann",
        "password": identity.hashed("secret"),
        "isHashed": True,
    }
    assert (store.active_user(), store.token("ann")) == ("ann", "token of ann")


@pytest.mark.parametrize(
    ("words", "name"), [(("u", "login"), "determined"), (("-u", "bob", "u", "login"), "bob")]
)
def test_who_logs_in_without_a_name(master, det, store, typed, words, name):
    typed("\n")
    assert det(*words).status == 0
    assert store.active_user() == name


def test_a_wrong_password_stores_nothing(master, det, store, typed):
    typed("wrong\n")
    master.answer("POST", LOGIN, Status(401, {"error": {"error": "invalid credentials"}}))
    result = det("user", "login", "ann")
    assert result.status == 1
    assert "Failed to log in: Unauthenticated: invalid credentials" in result.err
    assert store.users() == []


def test_an_expired_login_is_asked_for_again(master, det, store, typed):
    store.save("ann", "old", activate=True)
    master.answer("GET", "/api/v1/me", Status(401, {"error": {"error": "the token is too old"}}))
    master.answer("GET", "/api/v1/experiments", {"experiments": [], "pagination": {"total": 0}})
    typed("secret\n")
    result = det("e", "list")
    assert (result.status, result.err) == (0, "Password for user 'ann': ")
    assert store.token("ann") == "token of ann"


def test_an_expired_login_of_a_script_is_a_failure_that_says_what_to_do(master, det, store, typed):
    store.save("ann", "old", activate=True)
    master.answer("GET", "/api/v1/me", Status(401, {"error": {"error": "the token is too old"}}))
    typed("")
    result = det("e", "kill", 1)
    assert (result.status, result.out) == (1, "")
    assert "no password was entered; run 'det user login'" in result.err
    assert master.calls_to("POST", LOGIN) == master.calls_to("POST", "/api/v1/experiments/1/kill") == []


def test_whoami(master, det, store):
    assert det("user", "whoami").out == "You are logged in as user 'determined'\n"
    store.save("ann", "token of ann", activate=True)
    assert det("user", "whoami").out == "You are logged in as user 'ann'\n"


def test_logout_clears_the_active_user(master, det, store):
    store.save("ann", "token of ann", activate=True)
    store.save("bob", "token of bob")
    assert det("user", "logout").out == "Logged out user 'ann'\n"
    (call,) = master.calls_to("POST", "/api/v1/auth/logout")
    assert call.headers["Authorization"] == "Bearer token of ann"
    assert (store.active_user(), store.users()) == (None, ["bob"])


def test_logout_all(master, det, store):
    store.save("ann", "token of ann", activate=True)
    store.save("bob", "token of bob")
    master.answer("POST", "/api/v1/auth/logout", Status(401), {})
    assert det("user", "logout", "-a").status == 0
    assert store.users() == []


def test_logout_of_nobody(master, det, store):
    result = det("user", "logout")
    assert (result.status, result.out) == (0, "")
    assert "User 'determined' is not logged in" in result.err


def test_list(master, det, store):
    user = {"id": 1, "username": "ann", "displayName": "Ann", "admin": True, "active": True, "remote": False}
    group = {"agentUserGroup": {"agentUser": "root", "agentGroup": "wheel"}}
    master.answer("GET", "/api/v1/users", {"users": [{**user, **group}]})
    (header, _, row) = (
        [cell.strip() for cell in line.split("|")] for line in det("u", "list").out.splitlines()
    )
    assert header == [
        *("User Id", "Username", "Admin", "Active", "Remote"),
        *("Agent Uid", "Agent Gid", "Agent User", "Agent Group", "Display Name"),
    ]
    assert row == ["1", "ann", "True", "True", "False", "N/A", "N/A", "root", "wheel", "Ann"]


def test_two_masters_have_users_of_their_own(master, det, store, typed):
    other = TokenStore("http://other:8080")
    other.save("eve", "t", activate=True)
    typed("\n")
    det("user", "login", "ann")
    assert (store.active_user(), other.active_user()) == ("ann", "eve")

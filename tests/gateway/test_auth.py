"""Who may ask (REST spec, sections 1 and 2)."""

from __future__ import annotations

import time

import pytest

from det_contracts.events.gateway import PasswordSet
from services.kit import passwords
from services.people import tokens
from tests.gateway.harness import KEY, Harness


def test_a_session_begins_with_login_and_ends_with_logout(gateway):
    token = gateway.log_in()
    assert gateway.get("/api/v1/me")["user"]["username"] == "determined"
    assert gateway.post("/api/v1/auth/logout") == {}
    assert "closed" in gateway.refused(401, "GET", "/api/v1/me")
    gateway.log_in()
    assert gateway.get("/api/v1/auth/user")["user"]["id"] == 2
    gateway.client.headers["Authorization"] = f"Bearer {token}"
    gateway.refused(401, "GET", "/api/v1/me")


def test_every_replica_refuses_a_closed_session(gateway, tmp_path):
    token = gateway.log_in()
    gateway.post("/api/v1/auth/logout")
    (tmp_path / "other").mkdir()
    other = Harness(tmp_path / "other", gateway)
    other.client.headers["Authorization"] = f"Bearer {token}"
    other.refused(401, "GET", "/api/v1/me")
    other.close()


def test_login_hashes_what_is_not_hashed_and_takes_json_without_content_type(gateway):
    for body in (
        {"username": "admin", "password": "", "isHashed": True},
        {"username": "admin", "password": "", "is_hashed": False},
    ):
        answer = gateway.send("POST", "/api/v1/auth/login", body)
        assert "content-type" not in answer.request.headers
        assert answer.json()["user"] == {
            "id": 1,
            "username": "admin",
            "admin": True,
            "active": True,
            "agentUserGroup": None,
            "displayName": "",
            "modifiedAt": None,
            "remote": False,
        }


@pytest.mark.parametrize("body", [{"username": "determined", "password": "x"}, {"username": "nobody"}])
def test_a_wrong_login_is_401(gateway, body):
    answer = gateway.send("POST", "/api/v1/auth/login", body)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == 16
    assert answer.json()["error"]["reason"] == "Unauthenticated"


def test_the_hash_is_the_one_that_clients_use():
    assert passwords.client_hash("") == ""
    assert len(passwords.client_hash("secret")) == 128
    assert (
        passwords.client_hash("secret") == passwords.client_hash("secret") != passwords.client_hash("Secret")
    )


def test_a_cookie_is_as_good_as_a_bearer_token(gateway):
    token = gateway.log_in()
    del gateway.client.headers["Authorization"]
    gateway.refused(401, "GET", "/api/v1/me")
    answer = gateway.send("GET", "/api/v1/me", headers={"Cookie": f"auth={token}"})
    assert answer.status_code == 200


def test_what_needs_a_user_is_refused_without_one(gateway):
    del gateway.client.headers["Authorization"]
    for path in ("/experiments", "/trials/1", "/agents", "/users", "/templates", "/models"):
        gateway.refused(401, "GET", f"/api/v1{path}")
    assert gateway.send("GET", "/tasks").status_code == 401
    assert gateway.send("GET", "/tasks").json() == {"message": "not logged in; run 'det user login'"}
    for path in ("/api/v1/master", "/info", "/health", "/det/"):
        assert gateway.send("GET", path).status_code == 200


def test_tokens_cannot_be_changed():
    session = tokens.new_session("determined", time.time())
    token = tokens.issue(KEY, session)
    assert tokens.read(KEY, token) == session
    with pytest.raises(tokens.BadToken, match="not issued"):
        tokens.read(b"another key altogether", token)
    for broken in ("", "x", "x.y", "é.é", token[:-3], token.replace(".", "!")):
        with pytest.raises(tokens.BadToken):
            tokens.read(KEY, broken)


def test_a_password_that_was_set_by_a_clock_ahead_lets_its_user_in(gateway):
    """Another gateway's clock is some seconds ahead, or this one's was set back by hours."""
    set_ahead = PasswordSet(user_id=1, salt="", hashed="", reason="set by admin")
    gateway.apply(set_ahead, at=time.time() + 10_000)
    gateway.log_in("admin")
    assert gateway.get("/api/v1/me")["user"]["username"] == "admin"


def test_an_expired_session_must_log_in_again(gateway):
    for age, message in ((1, None), (tokens.VALID_S + 1, "the token is too old; run 'det user login'")):
        token = tokens.issue(KEY, tokens.new_session("determined", time.time() - age))
        gateway.client.headers["Authorization"] = f"Bearer {token}"
        if message is None:
            assert gateway.get("/api/v1/me")["user"]["username"] == "determined"
        else:
            assert gateway.refused(401, "GET", "/api/v1/me") == message
            assert gateway.refused(401, "POST", "/api/v1/experiments/1/kill") == message


def test_users_are_listed_and_found(gateway):
    assert [user["username"] for user in gateway.get("/api/v1/users")["users"]] == ["admin", "determined"]
    assert gateway.get("/api/v1/users/1")["user"]["username"] == "admin"
    assert gateway.get("/api/v1/users/admin/by-username")["user"]["id"] == 1
    assert gateway.refused(404, "GET", "/api/v1/users/9") == "user '9' not found"
    assert gateway.refused(404, "GET", "/api/v1/users/bob/by-username") == "user 'bob' not found"
    assert gateway.get("/api/v1/users/setting") == {"settings": []}

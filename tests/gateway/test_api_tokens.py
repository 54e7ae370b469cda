"""API tokens: what programs show that act for a person without knowing the password."""

import time

import pytest

from det_contracts.events.gateway import AccessToken
from services.kit.passwords import client_hash
from services.people import tokens

TOKENS = "/api/v1/tokens"


def make(gateway, name="ci", **more):
    return gateway.post(TOKENS, {"name": name, **more})


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_token_acts_for_whoever_made_it(gateway):
    made = make(gateway)
    assert made["token"].startswith("sft_")
    info = made["tokenInfo"]
    assert (info["name"], info["scope"], info["userId"]) == ("ci", "all", 2)
    assert gateway.get(TOKENS)["tokenInfo"] == [info]
    answer = gateway.send("GET", "/api/v1/me", headers=bearer(made["token"]))
    assert answer.json()["user"]["username"] == "determined"
    put = {"settings": [{"key": "k", "value": "v"}]}
    assert (
        gateway.send("POST", "/api/v1/users/setting", put, headers=bearer(made["token"])).status_code == 200
    )


def test_the_token_itself_is_shown_once_and_stands_nowhere(gateway):
    token = make(gateway)["token"]
    assert all(token.encode() not in message.body for message in gateway._stream())
    assert any(tokens.digest_of(token).encode() in message.body for message in gateway._stream())
    for path in (TOKENS, "/api/v1/events?limit=1000", "/api/v1/users/2/sessions"):
        assert token not in gateway.send("GET", path).text


def test_a_revoked_token_is_refused_at_once(gateway):
    made = make(gateway)
    assert gateway.send("DELETE", f"{TOKENS}/{made['tokenInfo']['id']}").status_code == 200
    answer = gateway.send("GET", "/api/v1/me", headers=bearer(made["token"]))
    assert answer.status_code == 401
    assert "revoked" in answer.json()["error"]["error"]
    assert gateway.get(TOKENS)["tokenInfo"] == []
    gateway.refused(404, "DELETE", f"{TOKENS}/{made['tokenInfo']['id']}")
    assert make(gateway)["tokenInfo"]["name"] == "ci", "its name is free again"


def test_a_token_for_reading_changes_nothing(gateway):
    token = bearer(make(gateway, scope="read")["token"])
    assert gateway.send("GET", "/api/v1/experiments", headers=token).status_code == 200
    for method, path, body in (
        ("POST", "/api/v1/users/setting", {"settings": []}),
        ("POST", "/api/v1/experiments", {"config": ""}),
        ("POST", "/api/v1/experiments/1/kill", None),
        ("PATCH", "/api/v1/users/2", {"displayName": "x"}),
        ("DELETE", "/api/v1/experiments/1", None),
        ("PUT", "/api/v1/projects/1/notes", {"notes": []}),
        ("POST", TOKENS, {"name": "more"}),
    ):
        answer = gateway.send(method, path, body, headers=token)
        assert answer.status_code == 403, path
        assert "for reading only" in answer.json()["error"]["error"]
    # What only looks, though by POST, finds no such experiment.
    assert gateway.send("POST", "/api/v1/experiments/9/file", {"path": "a"}, headers=token).status_code == 404


def test_no_token_makes_another_one_or_changes_the_password(gateway):
    """It would outlive being revoked."""
    token = bearer(make(gateway)["token"])
    for method, path, body in (
        ("POST", TOKENS, {"name": "more"}),
        ("POST", "/api/v1/users/2/password", client_hash("x")),
        ("PATCH", "/api/v1/users/2", {"password": "x"}),
        ("GET", "/api/v1/users/2/sessions", None),
        ("DELETE", "/api/v1/users/2/sessions", None),
    ):
        assert gateway.send(method, path, body, headers=token).status_code == 403, path


def test_logging_out_leaves_a_token(gateway):
    token = bearer(make(gateway)["token"])
    assert gateway.send("POST", "/api/v1/auth/logout", headers=token).json() == {}
    assert gateway.send("GET", "/api/v1/me", headers=token).status_code == 200


def expiring_token(gateway, until):
    token = tokens.new_api_token()
    gateway.apply(
        AccessToken(
            token_id="old", user_id=2, name="old", scope="all", digest=tokens.digest_of(token),
            at=0.0, until=until, reason="x",
        )
    )  # fmt: skip
    return bearer(token)


def test_a_token_expires(gateway):
    token = expiring_token(gateway, time.time() - 1)
    answer = gateway.send("GET", "/api/v1/me", headers=token)
    assert answer.status_code == 401
    assert "'old' has expired" in answer.json()["error"]["error"]
    assert gateway.get(TOKENS)["tokenInfo"] == []
    make(gateway, "old")
    assert "old" not in gateway.catalogue.state.tokens, "what is over is forgotten with the next one"


def test_it_dies_with_its_owners_account(gateway):
    token = bearer(make(gateway)["token"])
    gateway.log_in("admin")
    gateway.send("PATCH", "/api/v1/users/2", {"active": False})
    assert gateway.send("GET", "/api/v1/me", headers=token).status_code == 403


def test_others_tokens_are_for_administrators(gateway):
    mine = make(gateway)["tokenInfo"]["id"]
    gateway.log_in("admin")
    assert [token["id"] for token in gateway.get(TOKENS, username="determined")["tokenInfo"]] == [mine]
    assert [token["id"] for token in gateway.get(TOKENS, userId=2)["tokenInfo"]] == [mine]
    theirs = make(gateway)["tokenInfo"]["id"]
    assert "made by its owner" in gateway.refused(400, "POST", TOKENS, {"name": "x", "userId": 2})
    gateway.log_in()
    gateway.refused(403, "GET", f"{TOKENS}?username=admin")
    gateway.refused(404, "DELETE", f"{TOKENS}/{theirs}")
    gateway.log_in("admin")
    assert gateway.send("DELETE", f"{TOKENS}/{mine}").status_code == 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "needs a name"), ({"name": " "}, "needs a name"), ({"name": "a\nb"}, "needs a name"),
        ({"name": "x" * 101}, "at most 100"), ({"name": "a", "scope": "some"}, "'all' or 'read'"),
        ({"name": "a", "lifespan": "0h"}, "more than 0"),
        ({"name": "a", "lifespan": "367d"}, "at most 366 days"),
        ({"name": "a", "lifespan": "soon"}, "lifespan"), ({"name": "a", "lifespan": "-1h"}, "lifespan"),
    ],
)  # fmt: skip
def test_an_invalid_token_request_is_rejected_with_a_reason(gateway, body, expected):
    assert expected in gateway.refused(400, "POST", TOKENS, body)


@pytest.mark.parametrize(("lifespan", "days"), [("", 30), ("720h", 30), ("366d", 366), ("1h", 1 / 24)])
def test_it_lives_as_long_as_asked(gateway, lifespan, days):
    id = make(gateway, lifespan=lifespan)["tokenInfo"]["id"]
    left = gateway.catalogue.state.tokens[id].until - time.time()
    assert left == pytest.approx(days * 86400, abs=60)


def test_names_are_taken_and_there_are_so_many(gateway, monkeypatch):
    from services.people.commands import sessions

    monkeypatch.setattr(sessions, "MAX_TOKENS", 3)
    make(gateway, "a")
    assert "already" in gateway.refused(409, "POST", TOKENS, {"name": "a"})
    make(gateway, "b")
    make(gateway, "c")
    assert "revoke some" in gateway.refused(400, "POST", TOKENS, {"name": "d"})


@pytest.mark.parametrize("token", ["sft_", "sft_x", "sft_" + "A" * 43, "sft_\u00e9"])
def test_what_nobody_made_is_refused(gateway, token):
    headers = [(b"authorization", f"Bearer {token}".encode())]
    assert gateway.send("GET", "/api/v1/me", headers=headers).status_code == 401

from __future__ import annotations

import hashlib

import pytest

from determined.common.api import errors
from determined.transport import identity
from determined.transport.rest import Session
from determined.transport.token_store import TokenStore
from tests.sdk.fake_gateway import Status

LOGIN, ME = "/api/v1/auth/login", "/api/v1/me"


@pytest.fixture
def session(gateway, client_home):
    gateway.answer("POST", LOGIN, lambda call: {"token": f"token of {call.json['username']}"})
    with Session(gateway.url) as made:
        yield made


@pytest.fixture
def store(gateway, client_home):
    return TokenStore(gateway.url)


def logins(gateway):
    return [call.json for call in gateway.calls_to("POST", LOGIN)]


def test_passwords_travel_hashed():
    assert identity.hashed("") == ""
    assert identity.hashed("pässword") == hashlib.sha512("GubPEmmotfiK9TMD6Zdwpässword".encode()).hexdigest()


def test_a_fresh_install_works_without_login(gateway, session, store):
    identity.sign_in(session)
    assert (session.user, session.token) == ("determined", "token of determined")
    assert logins(gateway) == [{"username": "determined", "password": "", "isHashed": True}]
    assert store.token("determined") == "token of determined"
    assert store.active_user() is None


def test_a_stored_token_is_used_if_the_master_accepts_it(gateway, session, store):
    store.save("ann", "good", activate=True)
    identity.sign_in(session)
    assert (session.user, session.token) == ("ann", "good")
    assert logins(gateway) == []


def test_a_refused_token_is_dropped(gateway, session, store):
    store.save("ann", "bad", activate=True)
    gateway.answer("GET", ME, Status(401))
    identity.sign_in(session, ask=lambda user: f"password of {user}")
    assert session.token == "token of ann"
    assert store.token("ann") == "token of ann"
    assert logins(gateway)[0]["password"] == identity.hashed("password of ann")


def test_an_error_of_the_master_does_not_cost_the_token(gateway, session, store):
    store.save("ann", "good", activate=True)
    gateway.answer("GET", ME, Status(500, "broken"))
    with pytest.raises(errors.APIException, match="broken"):
        identity.sign_in(session)
    assert store.token("ann") == "good"


def test_the_explicit_user_comes_first(gateway, session, store, monkeypatch):
    monkeypatch.setenv("DET_USER", "env")
    monkeypatch.setenv("DET_PASS", "env")
    store.save("active", "x", activate=True)
    identity.sign_in(session, "eve", "secret")
    assert session.user == "eve"
    assert logins(gateway) == [{"username": "eve", "password": identity.hashed("secret"), "isHashed": True}]


def test_user_and_password_of_the_environment_precede_the_active_user(gateway, session, store, monkeypatch):
    store.save("active", "x", activate=True)
    monkeypatch.setenv("DET_USER", "env")
    monkeypatch.setenv("DET_PASS", "p")
    identity.sign_in(session)
    assert session.user == "env"
    assert logins(gateway)[0]["password"] == identity.hashed("p")


def test_a_user_of_the_environment_alone_does_not(gateway, session, store, monkeypatch):
    store.save("active", "x", activate=True)
    monkeypatch.setenv("DET_USER", "env")
    identity.sign_in(session)
    assert session.user == "active"


def test_inside_a_task_its_user_token_serves(gateway, session, store, monkeypatch):
    monkeypatch.setenv("DET_USER", "owner")
    monkeypatch.setenv("DET_USER_TOKEN", "task-token")
    monkeypatch.setenv("DET_SESSION_TOKEN", "allocation-token")
    identity.sign_in(session)
    assert (session.user, session.token) == ("owner", "task-token")
    assert store.users() == []


def test_a_login_inside_a_task_precedes_its_variables(gateway, session, store, monkeypatch):
    monkeypatch.setenv("DET_USER", "owner")
    monkeypatch.setenv("DET_USER_TOKEN", "task-token")
    store.save("ann", "good", activate=True)
    identity.sign_in(session)
    assert (session.user, session.token) == ("ann", "good")


def test_another_explicit_user_does_not_get_the_tasks_token(gateway, session, monkeypatch):
    monkeypatch.setenv("DET_USER", "owner")
    monkeypatch.setenv("DET_USER_TOKEN", "task-token")
    identity.sign_in(session, "eve", ask=lambda user: "")
    assert session.token == "token of eve"


def test_a_task_without_user_has_its_allocation_token(gateway, session, monkeypatch):
    monkeypatch.setenv("DET_SESSION_TOKEN", "allocation-token")
    identity.sign_in(session)
    assert session.token == "allocation-token"
    assert logins(gateway) == []
    assert identity.current_user(session) == "determined"


def test_the_default_user_with_a_password_is_asked_for_it(gateway, session):
    gateway.answer("POST", LOGIN, Status(401), {"token": "t"})
    identity.sign_in(session, ask=lambda user: "given")
    assert session.token == "t"


def test_nobody_to_ask_is_unauthenticated(gateway, session):
    with pytest.raises(errors.UnauthenticatedException, match="'ann' has no stored token"):
        identity.sign_in(session, "ann")
    assert logins(gateway) == []


def test_a_token_alone_precedes_stored_logins(gateway, session, store, monkeypatch):
    """As in a pipeline that is given an API token and nothing else."""
    store.save("determined", "good", activate=True)
    monkeypatch.setenv("DET_USER_TOKEN", "sft_x")
    identity.sign_in(session)
    assert (session.user, session.token) == (None, "sft_x")
    assert logins(gateway) == []
    identity.sign_in(session, "ann", "pw")
    assert session.user == "ann"


def test_a_path_has_no_room_for_what_names_nothing():
    assert identity.in_path("a/b") == "a%2Fb"
    with pytest.raises(ValueError, match="a name or an id is expected, not an empty text"):
        identity.in_path("")
    with pytest.raises(TypeError, match="a name is expected, a str, not NoneType"):
        identity.in_path(None)


def test_a_password_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="a password must be a str, not int"):
        identity.hashed(1234)

"""Users that are made and changed, and their passwords (REST spec, section 2)."""

from __future__ import annotations

import json

import pytest

from det_contracts.commands import Password, ResetPassword
from det_contracts.problems import Refused
from services.kit.passwords import client_hash, to_stored

AGENT = {"agentUid": 5, "agentGid": 0, "agentUser": "a", "agentGroup": "g"}


@pytest.fixture
def admin(gateway):
    gateway.log_in("admin")
    return gateway


def make(gateway, name="ann", **more):
    return gateway.post("/api/v1/users", {"user": {"username": name, **more}, "password": "pw"})["user"]


def try_to_log_in(gateway, name, password):
    body = {"username": name, "password": client_hash(password), "isHashed": True}
    answer = gateway.send("POST", "/api/v1/auth/login", body)
    gateway.client.cookies.clear()
    return answer


def test_a_user_is_made_and_logs_in(admin):
    made = make(admin, admin=True, displayName="Ann", agentUserGroup=AGENT)
    assert (made["id"], made["username"], made["admin"], made["active"]) == (3, "ann", True, True)
    assert made["agentUserGroup"] == AGENT
    names = [user["username"] for user in admin.get("/api/v1/users")["users"]]
    assert names == ["admin", "determined", "ann"]
    assert admin.get("/api/v1/users/ann/by-username")["user"] == made
    assert try_to_log_in(admin, "ann", "pw").json()["user"]["id"] == 3
    assert try_to_log_in(admin, "ann", "other").status_code == 401


def test_the_log_holds_no_password(admin):
    make(admin)
    bodies = b"".join(message.body for message in admin._stream())
    assert client_hash("pw").encode() not in bodies
    assert b"password_set" in bodies


@pytest.mark.parametrize(
    ("name", "status"),
    [("\u0430nn", 400), ("ann\u3164", 400), (" ann", 400), ("\uff41nn", 400), ("\u0441\u043e\u0440", 409)],
)
def test_no_name_is_taken_for_that_of_another(admin, name, status):
    """Before, work of one user could pass for that of another."""
    admin.post("/api/v1/users", {"user": {"username": "cop", "active": True}})
    admin.refused(status, "POST", "/api/v1/users", {"user": {"username": name, "active": True}})
    shown = {"displayName": "\u0430\u0501\u043cin"}
    assert "would be taken for the user 'admin'" in admin.refused(400, "PATCH", "/api/v1/users/2", shown)


def test_names_are_taken_and_checked(admin):
    assert "belongs to user 1" in admin.refused(409, "POST", "/api/v1/users", {"user": {"username": "admin"}})
    for name in ("", "  ", "a\nb", "x" * 129):
        assert "needs a name" in admin.refused(400, "POST", "/api/v1/users", {"user": {"username": name}})


@pytest.mark.parametrize("shown", ["Admin", "admin", " ADMIN "])
def test_nobody_else_is_shown_as_the_administrator(admin, shown):
    make(admin)
    for path in ("/api/v1/users/3", "/api/v1/users/2"):
        assert "be taken for" in admin.refused(400, "PATCH", path, {"displayName": shown})
    body = {"user": {"username": "bo", "displayName": shown}}
    assert "be taken for" in admin.refused(400, "POST", "/api/v1/users", body)
    assert admin.send("PATCH", "/api/v1/users/1", {"displayName": shown}).status_code == 200


@pytest.mark.parametrize("change", [{"admin": False}, {"active": False}])
def test_there_is_always_an_administrator(admin, change):
    make(admin, admin=True, active=False)
    assert "last active administrator" in admin.refused(400, "PATCH", "/api/v1/users/1", change)
    admin.send("PATCH", "/api/v1/users/3", {"active": True})
    assert admin.send("PATCH", "/api/v1/users/1", change).status_code == 200


@pytest.mark.parametrize("lacking", ["agentUser", "agentGroup"])
def test_an_agent_user_needs_both_names(admin, lacking):
    payload = {**AGENT, lacking: ""}
    assert "agentGroup" in admin.refused(400, "PATCH", "/api/v1/users/2", {"agentUserGroup": payload})
    below = {**AGENT, "agentUid": -1}
    assert "0 or more" in admin.refused(400, "PATCH", "/api/v1/users/2", {"agentUserGroup": below})


def test_only_administrators_make_and_change_others(gateway):
    assert "not an administrator" in gateway.refused(
        403, "POST", "/api/v1/users", {"user": {"username": "x"}}
    )
    assert "not an administrator" in gateway.refused(403, "PATCH", "/api/v1/users/1", {"displayName": "x"})
    assert "not an administrator" in gateway.refused(403, "PATCH", "/api/v1/users/2", {"admin": True})
    assert "not an administrator" in gateway.refused(403, "POST", "/api/v1/users/1/password", "x")
    own = gateway.send("PATCH", "/api/v1/users/2", {"displayName": "Me"}).json()["user"]
    assert own["displayName"] == "Me"
    assert gateway.get("/api/v1/me")["user"]["displayName"] == "Me"


def test_a_new_password_ends_sessions_from_before(gateway):
    answer = gateway.send("POST", "/api/v1/users/2/password", client_hash("new"))
    assert answer.status_code == 200, answer.text
    gateway.refused(401, "GET", "/api/v1/me")
    assert try_to_log_in(gateway, "determined", "").status_code == 401
    assert try_to_log_in(gateway, "determined", "new").status_code == 200


def test_a_password_must_be_a_string(gateway):
    assert "JSON string" in gateway.refused(400, "POST", "/api/v1/users/2/password", {"password": "x"})


def test_who_is_inactive_is_out(admin):
    make(admin)
    token = try_to_log_in(admin, "ann", "pw").json()["token"]
    admin.send("PATCH", "/api/v1/users/3", {"active": False})
    headers = {"Authorization": f"Bearer {token}"}
    assert admin.send("GET", "/api/v1/me", headers=headers).status_code == 403
    assert try_to_log_in(admin, "ann", "other").status_code == 401
    answer = try_to_log_in(admin, "ann", "pw")
    assert (answer.status_code, answer.json()["error"]["error"]) == (403, "user is not active")
    admin.send("PATCH", "/api/v1/users/3", {"active": True})
    assert admin.send("GET", "/api/v1/me", headers=headers).status_code == 200


def test_what_was_done_under_a_former_name_stays_the_users(admin):
    from tests.gateway import stories as story

    make(admin)
    admin.apply(story.created(1, user="ann"), story.created(2))
    renamed = admin.send("PATCH", "/api/v1/users/3", {"username": "anna"}).json()["user"]
    assert renamed["username"] == "anna"
    shown = admin.get("/api/v1/experiments/1")["experiment"]
    assert (shown["username"], shown["userId"]) == ("anna", 3)
    for wanted in ({"users": "anna"}, {"userIds": 3}):
        experiments = admin.get("/api/v1/experiments", **wanted)["experiments"]
        assert [experiment["id"] for experiment in experiments] == [1]
    assert try_to_log_in(admin, "ann", "pw").status_code == 401
    assert try_to_log_in(admin, "anna", "pw").status_code == 200
    assert "or did" in admin.refused(409, "POST", "/api/v1/users", {"user": {"username": "ann"}})


def test_who_logs_in_elsewhere_has_no_password_here(admin):
    make(admin, name="far", remote=True)
    assert try_to_log_in(admin, "far", "pw").status_code == 401


def test_what_stays_the_same_is_no_event(admin):
    make(admin)
    before = len(admin._stream())
    admin.send("PATCH", "/api/v1/users/3", {"displayName": "", "active": True})
    assert len(admin._stream()) == before


def test_unknown_users(admin):
    for method, path, body in (
        ("GET", "/api/v1/users/9", None),
        ("PATCH", "/api/v1/users/9", {"active": False}),
        ("POST", "/api/v1/users/9/password", "x"),
        ("GET", "/api/v1/users/nobody/by-username", None),
    ):
        assert "not found" in admin.refused(404, method, path, body)


def test_the_shape_of_a_user_is_checked(admin):
    for body in ({}, {"user": 3}, {"user": {"username": 3}}, {"user": {"username": "x", "admin": "maybe"}}):
        assert admin.send("POST", "/api/v1/users", body).status_code == 400, json.dumps(body)


# -- settings

SETTING = "/api/v1/users/setting"


def settings(gateway):
    return [
        (setting["storagePath"], setting["key"], setting["value"])
        for setting in gateway.get(SETTING)["settings"]
    ]


def test_settings_are_kept_for_each_user_by_itself(gateway):
    given_settings = [
        {"storagePath": "list", "key": "columns", "value": "[1]"},
        {"key": "theme", "value": "dark"},
    ]
    gateway.post(SETTING, {"settings": given_settings})
    gateway.post(SETTING, {"setting": {"storagePath": "list", "key": "columns", "value": "[2]"}})
    assert settings(gateway) == [("list", "columns", "[2]"), ("", "theme", "dark")]
    gateway.log_in("admin")
    assert settings(gateway) == []
    gateway.post(f"{SETTING}/reset")
    gateway.log_in("determined")
    assert len(settings(gateway)) == 2
    gateway.post(f"{SETTING}/reset")
    assert settings(gateway) == []


def test_what_is_kept_already_is_no_event(gateway):
    before = len(gateway.journal.streams["CONTROL"])
    for _ in range(3):
        gateway.post(SETTING, {"settings": [{"key": "theme", "value": "dark"}]})
    assert len(gateway.journal.streams["CONTROL"]) == before + 2, "a decision and its event"


@pytest.mark.parametrize("setting", [{"value": "x"}, {"key": "k", "value": "x" * (1 << 20)}])
def test_settings_that_cannot_be_kept(gateway, setting):
    gateway.refused(400, "POST", SETTING, {"settings": [setting]})
    assert settings(gateway) == []


def reset(gateway, username, password, **more):
    command = ResetPassword(username=username, password=password, by="'root'", **more)
    return gateway.run(gateway.backend.peers.command(command))


def test_the_host_lets_a_user_in_again(admin):
    """Whoever lost the only administrator's password had a cluster without one."""
    made = make(admin, remote=True)
    admin.send("PATCH", f"/api/v1/users/{made['id']}", {"active": False})
    assert try_to_log_in(admin, "ann", "pw").status_code != 200
    assert reset(admin, "ann", to_stored(client_hash("new"))) == made["id"]
    user = try_to_log_in(admin, "ann", "new").json()["user"]
    assert (user["active"], user["remote"], user["admin"]) == (True, False, False)
    reset(admin, "ann", to_stored(client_hash("new")), admin=True)
    assert try_to_log_in(admin, "ann", "new").json()["user"]["admin"] is True


def test_what_the_host_cannot_reset_is_named(admin):
    before = len(admin._stream())
    with pytest.raises(Refused, match="nobody"):
        reset(admin, "nobody", to_stored("x"))
    with pytest.raises(Refused, match="the new password of user 'admin' is empty"):
        reset(admin, "admin", Password())
    assert len(admin._stream()) == before

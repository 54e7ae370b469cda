"""Settings state how rights are judged, as a fact of the log."""

from __future__ import annotations

import pytest

from det_contracts.events.gateway import AuthzSet, Grant, RolesSet
from services.gateway.starting.authz_mode import apply
from services.kit.settings import BadSettings
from services.rest_requests.settings import Settings


def state_it(gateway, wanted):
    gateway.run(apply(Settings(authz=wanted), gateway.catalogue, gateway.backend.peers))
    return [event.mode for event in gateway.events_of(AuthzSet)]


def test_settings_are_stated_once_and_hold_until_others_are(gateway):
    master = lambda: gateway.get("/api/v1/master")["rbacEnabled"]  # noqa: E731
    assert (state_it(gateway, ""), master()) == ([], False)
    assert (state_it(gateway, "basic"), master()) == ([], False)
    assert (state_it(gateway, "rbac"), master()) == (["rbac"], True)
    # A gateway that says nothing opens nothing.
    for nothing_new in ("rbac", ""):
        assert (state_it(gateway, nothing_new), master()) == (["rbac"], True)
    assert (state_it(gateway, "basic"), master()) == (["rbac", "basic"], False)


def test_owners_of_workspaces_administer_them_when_roles_begin_to_count(gateway):
    """Under ownership a workspace is its maker's, who holds no role for that."""
    gateway.log_in("admin")
    for name in ("ann", "ben", "eve"):
        gateway.post("/api/v1/users", {"user": {"username": name, "active": True}})
    made = {}
    for owner, name in (("ann", "one"), ("ann", "two"), ("ben", "three"), ("admin", "four"), ("ben", "five")):
        gateway.log_in(owner)
        made[name] = gateway.post("/api/v1/workspaces", {"name": name})["workspace"]["id"]
    gateway.apply(RolesSet("user-3", (Grant("Viewer"),), "tried"))
    # What was given for the time when roles count is what is wanted.
    gateway.apply(RolesSet("user-4", (Grant("Editor", made["five"]),), "tried"))
    state_it(gateway, "rbac")
    held = {name: set(held_roles.grants) for name, held_roles in gateway.catalogue.state.roles.items()}
    administers = {name: Grant("WorkspaceAdmin", id) for name, id in made.items()}
    assert held == {
        "user-3": {Grant("Viewer"), administers["one"], administers["two"]},
        "user-4": {administers["three"], Grant("Editor", made["five"])},
    }
    gateway.log_in("ann")
    gateway.send("PATCH", f"/api/v1/workspaces/{made['one']}", {"name": "mine"}).raise_for_status()
    gateway.log_in("eve")
    assert gateway.send("PATCH", f"/api/v1/workspaces/{made['one']}", {"name": "x"}).status_code == 404
    # Told once: going back and forth changes nothing more.
    before = len(gateway.events_of(RolesSet))
    for mode in ("basic", "rbac"):
        state_it(gateway, mode)
    assert len(gateway.events_of(RolesSet)) == before


def test_another_word_is_refused(gateway):
    with pytest.raises(BadSettings, match="basic or rbac, not 'roles'"):
        state_it(gateway, "roles")

"""Signing in: which account it is, its groups, and who stays out."""

import time

import pytest

from det_contracts.commands import CloseSession
from det_contracts.events.gateway import GroupSet, SignedIn, UserSet
from services.kit.rules import Call
from services.web.pacing import Pacing
from tests.gateway.harness import Harness
from tests.gateway.lying_provider import CLIENT
from tests.gateway.oidc import begin, come_back, refused, sign_in
from tests.gateway.oidc import gateway as gateway
from tests.gateway.oidc import liar as liar
from tests.gateway.oidc import made as made
from tests.gateway.oidc import truthful as truthful


def user(id, name, **more):
    return UserSet(user_id=id, username=name, reason="made", **more)


def test_an_account_with_a_password_is_not_taken_over(gateway, liar):
    for name in ("admin", "determined", "ADMIN"):
        text = refused(gateway, sign_in(gateway, liar, preferred_username=name), 403)
        assert "link-with-provider" in text or "cannot be the name" in text
    gateway.apply(user(3, "bob"), user(4, "robert", former=("rob",)))
    for name in ("bob", "robert", "rob"):
        refused(gateway, sign_in(gateway, liar, preferred_username=name), 403)
    assert gateway.events_of(SignedIn) == []


def test_an_account_that_was_linked_is_taken_by_the_first_of_its_name_and_by_nobody_after(gateway, liar):
    gateway.apply(user(3, "bob", remote=True))
    assert sign_in(gateway, liar, preferred_username="bob").status_code == 303
    assert gateway.get("/api/v1/me")["user"]["id"] == 3
    gateway.client.cookies.clear()
    answer = sign_in(gateway, liar, preferred_username="bob", sub="s-2")
    assert answer.status_code == 403
    assert "auth" not in gateway.client.cookies
    # Linked anew, it is taken anew; unlinked, it is not.
    gateway.apply(user(3, "bob"))
    assert sign_in(gateway, liar, preferred_username="bob").status_code == 403
    gateway.apply(user(3, "bob", remote=True))
    assert sign_in(gateway, liar, preferred_username="bob", sub="s-2").status_code == 303


def test_who_is_not_active_stays_out(gateway, liar):
    sign_in(gateway, liar)
    gateway.apply(user(3, "ann", remote=True, active=False))
    gateway.client.cookies.clear()
    answer = sign_in(gateway, liar)
    assert (answer.status_code, "user is not active" in answer.text) == (403, True)
    assert "auth" not in gateway.client.cookies
    gateway.apply(user(4, "carl", remote=True, active=False))
    assert sign_in(gateway, liar, preferred_username="carl", sub="s-4").status_code == 403


@pytest.mark.parametrize(
    "name", ["", "  ", "a\nb", "a\u202eb", "x" * 129, "\uff41nn", " ann", 7, None, ["ann"], "\ud800"]
)
def test_names_that_would_be_read_otherwise_are_refused(gateway, liar, name):
    assert sign_in(gateway, liar, preferred_username=name).status_code in (401, 403)
    assert gateway.events_of(UserSet) == []


@pytest.mark.parametrize("name", ["o'brien", "ann@lab.example", "Åse Ünal", "名前", "<b>", "a/b", "a b;--"])
def test_odd_names_are_names(gateway, liar, name):
    assert sign_in(gateway, liar, preferred_username=name).status_code == 303
    assert gateway.get("/api/v1/me")["user"]["username"] == name


def test_shown_names_deceive_nobody(gateway, liar):
    sign_in(gateway, liar, name="Admin")
    assert gateway.get("/api/v1/me")["user"]["displayName"] == ""
    sign_in(gateway, liar, sub="s-2", preferred_username="eve", name="\u202eEve\n" + "x" * 500)
    assert gateway.events_of(UserSet)[-1].display_name == "Eve" + "x" * 125


def test_only_those_with_an_account_where_none_is_made(made, liar):
    gateway = made(oidc_provision=False)
    assert "det user create ann --remote" in refused(gateway, sign_in(gateway, liar), 403)
    gateway.apply(user(3, "ann", remote=True))
    assert sign_in(gateway, liar).status_code == 303


def test_an_address_counts_as_a_name_only_if_it_was_verified(made, liar):
    gateway = made(oidc_username_claim="email")
    for verified in (False, None, "true"):
        refused(gateway, sign_in(gateway, liar, email="ann@lab", email_verified=verified))
    assert sign_in(gateway, liar, email="ann@lab", email_verified=True).status_code == 303


@pytest.mark.parametrize("groups", [None, [], "other", ["other", 7], {"ml": 1}, 7])
def test_only_members_of_the_allowed_groups_sign_in(made, liar, groups):
    gateway = made(oidc_allowed_groups="ml, vision")
    refused(gateway, sign_in(gateway, liar, groups=groups))
    assert sign_in(gateway, liar, groups=["vision", "other"]).status_code == 303
    assert gateway.events_of(SignedIn)[-1].groups == ("vision",)


def test_the_providers_groups_grant_and_revoke_administrator_rights(made, liar):
    gateway = made(oidc_admin_groups="ops")
    sign_in(gateway, liar, groups=["ops"])
    assert gateway.get("/api/v1/me")["user"]["admin"]
    sign_in(gateway, liar, groups=[])
    assert not gateway.get("/api/v1/me")["user"]["admin"]


def test_the_last_administrator_stays_one(made, liar):
    gateway = made(oidc_admin_groups="ops")
    sign_in(gateway, liar, groups=["ops"])
    gateway.apply(user(1, "admin"))
    assert sign_in(gateway, liar, groups=[]).status_code == 303
    assert gateway.get("/api/v1/me")["user"]["admin"]


def groups_of(gateway):
    return {group.name: group.members for group in gateway.catalogue.state.groups.values()}


def test_the_provider_fills_the_groups_that_it_manages_and_no_others(made, liar):
    gateway = made(oidc_groups="ml=Vision, lab=Vision, ops")
    gateway.apply(GroupSet(group_id=1, name="VISION", members=(2,), reason="made"))
    gateway.apply(GroupSet(group_id=2, name="by hand", members=(2, 3), reason="made"))
    sign_in(gateway, liar, groups=["lab", "ops", "by hand", "other"])
    assert groups_of(gateway) == {"VISION": (2, 3), "by hand": (2, 3), "ops": (3,)}
    assert gateway.events_of(SignedIn)[-1].groups == ("lab", "ops")
    before = len(gateway.events_of(GroupSet))
    sign_in(gateway, liar, groups=["ml", "ops"])
    assert len(gateway.events_of(GroupSet)) == before
    sign_in(gateway, liar, groups=[])
    assert groups_of(gateway) == {"VISION": (2,), "by hand": (2, 3), "ops": ()}


def test_who_has_no_groups_claim_is_in_none(made, liar):
    gateway = made(oidc_groups="ops")
    sign_in(gateway, liar, groups=["ops"])
    sign_in(gateway, liar, groups=None)
    assert groups_of(gateway) == {"ops": ()}


def test_two_groups_that_are_made_at_once_have_two_ids(made, liar):
    gateway = made(oidc_groups="a, b, x=y=c")
    sign_in(gateway, liar, groups=["a", "b", "x=y"])
    assert groups_of(gateway) == {"a": (3,), "b": (3,), "c": (3,)}


def test_a_session_that_is_closed_while_it_waits_its_turn_is_refused(gateway, liar, monkeypatch):
    sign_in(gateway, liar)
    closing = gateway.peers.close

    async def turn(self, who):
        [id] = gateway.catalogue.state.open_sessions
        await closing(CloseSession(session_id=id, user="ann"), Call("close", time.time()))

    monkeypatch.setattr(Pacing, "_turn", turn)
    assert gateway.send("GET", "/api/v1/me").status_code == 401


def test_no_password_lets_a_linked_user_in(gateway, liar):
    sign_in(gateway, liar)
    gateway.client.cookies.clear()
    gateway.refused(401, "POST", "/api/v1/auth/login", {"username": "ann", "password": ""})


def test_another_replica_finishes_and_a_new_one_knows_them(made, liar, tmp_path):
    first = made()
    (tmp_path / "other").mkdir()
    other = Harness(tmp_path / "other", first, oidc_issuer=liar.url, oidc_client_id=CLIENT)
    try:
        query = begin(first)
        liar.says(query["nonce"])
        other.client.cookies = first.client.cookies
        assert come_back(other, query["state"]).status_code == 303
        sign_in(first, liar)
        assert {event.user_id for event in first.events_of(SignedIn)} == {3}
    finally:
        other.close()

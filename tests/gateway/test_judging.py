"""Settings state how rights are judged, as a fact of the log."""

from __future__ import annotations

import pytest

from det_contracts.events.gateway import AuthzSet
from services.gateway.running.judging import settle
from services.gateway.running.settings import Settings
from services.kit.settings import BadSettings


def state_it(gateway, wanted):
    gateway.run(settle(Settings(authz=wanted), gateway.catalogue, gateway.backend.peers))
    return [one.mode for one in gateway.said(AuthzSet)]


def test_settings_are_stated_once_and_hold_until_others_are(gateway):
    master = lambda: gateway.get("/api/v1/master")["rbacEnabled"]  # noqa: E731
    assert (state_it(gateway, ""), master()) == ([], False)
    assert (state_it(gateway, "basic"), master()) == ([], False)
    assert (state_it(gateway, "rbac"), master()) == (["rbac"], True)
    # A gateway that says nothing opens nothing.
    for nothing_new in ("rbac", ""):
        assert (state_it(gateway, nothing_new), master()) == (["rbac"], True)
    assert (state_it(gateway, "basic"), master()) == (["rbac", "basic"], False)


def test_another_word_is_refused(gateway):
    with pytest.raises(BadSettings, match="basic or rbac, not 'roles'"):
        state_it(gateway, "roles")

"""`det resource-pool bindings` and the pools of workspaces."""

import pytest

PATH = "/api/v1/resource-pools/gpu/workspace-bindings"


@pytest.fixture
def pools(master):
    spaces = [{"id": 2, "name": "nlp"}, {"id": 3, "name": "vision"}]
    master.answer("GET", "/api/v1/workspaces", {"workspaces": spaces, "pagination": {"total": 2}})
    for method in ("POST", "PUT", "DELETE"):
        master.answer(method, PATH, {})
    return master


@pytest.mark.parametrize(
    ("verb", "method", "message"),
    [
        ("add", "POST", "now also bound to nlp, vision"),
        ("remove", "DELETE", "no longer"),
        ("replace", "PUT", "only"),
    ],
)
def test_workspaces_go_by_name(pools, det, verb, method, message):
    assert message in det("resource-pool", "bindings", verb, "gpu", "nlp", "vision").out
    (call,) = pools.calls_to(method, PATH)
    assert call.json["workspaceNames"] == ["nlp", "vision"]
    assert det("resource-pool", "bindings", verb, "gpu").status == 2


def test_the_workspaces_of_a_pool_are_listed(pools, det):
    pools.answer("GET", PATH, {"workspaceIds": [3], "pagination": {"total": 1}})
    shown = det("rp", "bindings", "list-workspaces", "gpu").out
    assert "vision" in shown
    assert "nlp" not in shown
    pools.answer("GET", PATH, {"workspaceIds": [], "pagination": {"total": 0}})
    assert "not bound to any workspace" in det("rp", "bindings", "list-workspaces", "gpu").out


def test_the_pools_of_a_workspace_are_listed_with_what_they_are_for(pools, det):
    space = {"workspace": {"id": 2, "name": "nlp", "defaultComputePool": "gpu", "defaultAuxPool": ""}}
    pools.answer("GET", "/api/v1/workspaces/2", space)
    page = {"resourcePools": ["default", "gpu", "other"], "pagination": {"total": 3}}
    pools.answer("GET", "/api/v1/workspaces/2/available-resource-pools", page)
    lines = [line.split("|") for line in det("workspace", "list-pools", "nlp").out.splitlines()]
    shown = {cells[0].strip(): cells[1].strip() for cells in lines if len(cells) > 1}
    assert (shown["default"], shown["gpu"], shown["other"]) == ("auxiliary", "compute", "")


def test_a_workspace_is_given_default_pools(pools, det):
    pools.answer("PATCH", "/api/v1/workspaces/2", {"workspace": {"id": 2, "name": "nlp"}})
    assert det("w", "edit", "nlp", "--default-compute-pool", "gpu", "--default-aux-pool", "").status == 0
    (call,) = pools.calls_to("PATCH", "/api/v1/workspaces/2")
    assert call.json == {"defaultComputePool": "gpu", "defaultAuxPool": ""}

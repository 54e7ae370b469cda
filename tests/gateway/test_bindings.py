"""Resource pools that are bound to workspaces, over REST."""

import pytest

from det_contracts.events import gateway as events
from tests.gateway import stories
from tests.gateway.test_workspace_defaults import CONFIG, commands_of_kind

PATH = "/api/v1/resource-pools/gpu/workspace-bindings"
GPU = CONFIG + "resources: {resource_pool: gpu}\n"


def worker_in(pool, id):
    made = stories.worker_here(id)
    return type(made)(**{name: getattr(made, name) for name in made.__struct_fields__} | {"pool": pool})


@pytest.fixture
def lab(gateway):
    """Pools default, gpu and quiet; workspaces 2 (nlp) and 3 (vision), each with a project of its number."""
    gateway.log_in("admin")
    gateway.apply(stories.worker_here(), worker_in("gpu", "w-2"), worker_in("quiet", "w-3"))
    for id, name in ((2, "nlp"), (3, "vision")):
        gateway.post("/api/v1/workspaces", {"name": name})
        gateway.post(f"/api/v1/workspaces/{id}/projects", {"name": "p"})
    return gateway


def bind(gateway, method="POST", path=PATH, **body):
    answer = gateway.send(method, path, body)
    assert answer.status_code == 200, answer.text
    return gateway.get(path)["workspaceIds"]


def pools(gateway, id):
    return gateway.get(f"/api/v1/workspaces/{id}/available-resource-pools")["resourcePools"]


def submit(gateway, project, text=GPU, status=200):
    body = {"config": text, "projectId": project, "validateOnly": True}
    answer = gateway.send("POST", "/api/v1/experiments", body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_pool_is_everybodys_until_it_is_bound_and_again_when_nobody_is_left(lab):
    assert pools(lab, 2) == pools(lab, 3) == ["default", "gpu", "quiet"]
    assert bind(lab, workspaceNames=["nlp"]) == [2]
    assert (pools(lab, 2), pools(lab, 3)) == (["default", "gpu", "quiet"], ["default", "quiet"])
    assert bind(lab, workspaceIds=[3, 3], workspaceNames=None) == [2, 3]
    assert bind(lab, "PUT", workspaceIds=[3]) == [3]
    before = len(lab.events_of(events.PoolBound))
    assert bind(lab, "PUT", workspaceNames=["vision"]) == [3]
    assert len(lab.events_of(events.PoolBound)) == before, "what is so already is no event"
    assert bind(lab, "DELETE", workspaceIds=[3]) == []
    assert "gpu" in pools(lab, 2)


def test_a_list_of_bindings_comes_in_pages(lab):
    bind(lab, workspaceIds=[1, 2, 3])
    page = lab.get(PATH, limit=1, offset=1)
    assert (page["workspaceIds"], page["pagination"]["total"]) == ([2], 3)


def test_pools_that_are_bound_can_be_left_out_of_the_list(lab):
    bind(lab, workspaceIds=[2])
    names = [pool["name"] for pool in lab.get("/api/v1/resource-pools", unbound="true")["resourcePools"]]
    assert names == ["default", "quiet"]
    assert len(lab.get("/api/v1/resource-pools")["resourcePools"]) == 3


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("POST", PATH.replace("gpu", "default"), {"workspaceIds": [2]}, 412, "default resource pool cannot"),
        ("POST", PATH.replace("gpu", "none"), {"workspaceIds": [2]}, 404, "resource pool 'none' not found"),
        ("GET", PATH.replace("gpu", "none"), None, 404, "resource pool 'none' not found"),
        ("POST", PATH, {"workspaceIds": [9]}, 404, "workspace '9' not found"),
        ("PUT", PATH, {"workspaceNames": ["none"]}, 404, "workspace 'none' not found"),
        ("DELETE", PATH, {"workspaceIds": [2]}, 412, "is not bound to workspace 'nlp'"),
        ("POST", PATH, {"workspaceIds": "all"}, 400, "workspaceIds"),
        ("GET", "/api/v1/workspaces/9/available-resource-pools", None, 404, "workspace"),
    ],
)
def test_what_makes_no_sense_is_refused(lab, method, path, body, status, reason):
    answer = lab.send(method, path, body)
    message = answer.json()["error"]["error"]
    assert reason in message, message
    assert answer.status_code in (status, 400), answer.text
    assert lab.events_of(events.PoolBound) == []


def test_only_administrators_bind(lab):
    lab.log_in("determined")
    for method in ("POST", "PUT", "DELETE"):
        assert "administrator" in lab.refused(403, method, PATH, {"workspaceIds": [2]})
    assert pools(lab, 2) == ["default", "gpu", "quiet"]


def test_submissions_from_elsewhere_are_refused_before_anything_is_made(lab):
    bind(lab, workspaceIds=[2])
    submit(lab, 2)
    message = submit(lab, 3, status=400)["error"]["error"]
    assert "resource pool gpu does not exist or is not available to workspace id 3" in message
    assert "det resource-pool bindings add gpu vision" in message
    task = {"config": {"entrypoint": ["true"], "resources": {"resource_pool": "gpu"}}}
    lab.post("/api/v1/commands", {**task, "workspaceId": 2})
    assert "bound to others than 'vision'" in lab.refused(
        400, "POST", "/api/v1/commands", {**task, "workspaceId": 3}
    )
    assert len(commands_of_kind(lab, "SubmitTask")) == 1
    assert submit(lab, 3, CONFIG)["config"]["resources"]["resource_pool"] == "default"


def test_a_workspace_has_default_pools_for_what_names_none(lab):
    chosen = {"defaultComputePool": "gpu", "defaultAuxPool": "quiet"}
    shown = lab.send("PATCH", "/api/v1/workspaces/2", chosen).json()["workspace"]
    assert (shown["defaultComputePool"], shown["defaultAuxPool"]) == ("gpu", "quiet")
    of = {
        CONFIG: "gpu",
        CONFIG + "resources: {slots_per_trial: 0}\n": "quiet",
        CONFIG + "resources: {resource_pool: default}\n": "default",
    }
    for text, pool in of.items():
        assert submit(lab, 2, text)["config"]["resources"]["resource_pool"] == pool
        by_name = lab.send(
            "POST",
            "/api/v1/experiments",
            {"config": text + "workspace: nlp\nproject: p\n", "validateOnly": True},
        )
        assert by_name.json()["config"]["resources"]["resource_pool"] == pool
    assert submit(lab, 3, CONFIG)["config"]["resources"]["resource_pool"] == "default"
    lab.post("/api/v1/commands", {"config": {"entrypoint": ["true"]}, "workspaceId": 2})
    no_slots = {"entrypoint": ["true"], "resources": {"slots": 0}}
    lab.post("/api/v1/commands", {"config": no_slots, "workspaceId": 2})
    lab.post("/api/v1/commands", {"config": {"entrypoint": ["true"]}})
    assert [command.pool for command in commands_of_kind(lab, "SubmitTask")] == ["gpu", "quiet", "default"]
    cleared = {"defaultComputePool": "", "defaultAuxPool": ""}
    assert lab.send("PATCH", "/api/v1/workspaces/2", cleared).json()["workspace"]["defaultAuxPool"] == ""
    assert submit(lab, 2, CONFIG)["config"]["resources"]["resource_pool"] == "default"


def test_a_default_pool_is_one_that_the_workspace_may_use(lab):
    bind(lab, workspaceIds=[3])
    body = {"defaultComputePool": "gpu"}
    assert "bound to others" in lab.refused(400, "PATCH", "/api/v1/workspaces/2", body)
    assert "not found" in lab.refused(404, "POST", "/api/v1/workspaces", {"name": "new", **body} | {
        "defaultComputePool": "none"
    })  # fmt: skip
    assert lab.send("PATCH", "/api/v1/workspaces/3", body).status_code == 200


def test_a_workspace_that_goes_opens_no_pool_to_everybody(lab):
    bind(lab, workspaceIds=[2])
    answer = lab.send("DELETE", "/api/v1/workspaces/2")
    assert answer.status_code != 200
    assert "all could use it" in answer.json()["error"]["error"]
    bind(lab, workspaceIds=[3])
    assert lab.send("DELETE", "/api/v1/workspaces/2").status_code == 200
    assert lab.get(PATH)["workspaceIds"] == [3]


def test_why_tells_who_may_use_a_pool(lab):
    bind(lab, workspaceIds=[2, 3])
    answer = lab.get("/api/v1/why/pool/gpu")
    steps = [step["what"] for step in answer["steps"]]
    assert "pool gpu was bound to workspaces 2, 3: no others may submit to it" in steps, steps
    bind(lab, "PUT", workspaceIds=[])
    newest = [step["what"] for step in lab.get("/api/v1/why/pool/gpu", verbose="true")["steps"]]
    assert "pool gpu was opened to all workspaces" in newest, newest

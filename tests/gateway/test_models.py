"""The model registry (REST spec, section 5), with the real rules of its owner."""

from __future__ import annotations

import pytest

from det_contracts import queries
from tests.gateway import stories as story

UUIDS = ("c-1", "c-2")


@pytest.fixture
def registry(gateway):
    """Model 1 `digits`, and two checkpoints."""
    gateway.apply(story.created(1), story.trial_created(1, lr=0.1))
    gateway.apply(story.stored(1, UUIDS[0], 10), story.stored(1, UUIDS[1], 20))
    body = {"name": "digits", "description": "reads digits", "labels": ["a", "b"], "metadata": {"k": 1}}
    made = gateway.post("/api/v1/models", body)["model"]
    assert (made["id"], made["numVersions"], made["username"], made["workspaceId"]) == (1, 0, "determined", 1)
    assert {key: made[key] for key in body} == body
    return gateway


def register(gateway, uuid=UUIDS[0], **more):
    body = {"checkpointUuid": uuid, **more}
    return gateway.post("/api/v1/models/digits/versions", body)["modelVersion"]


def test_by_name_and_by_id(registry):
    assert registry.get("/api/v1/models/digits") == registry.get("/api/v1/models/1")
    assert "model 'nope' not found" in registry.refused(404, "GET", "/api/v1/models/nope")


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("digits", 409, "there is already a model named"),
        ("", 400, "needs a name"),
        ("a/b", 400, "it has a '/'"),
        ("12", 400, "must not be a number"),
    ],
)
def test_names_that_are_refused(registry, name, status, message):
    assert message in registry.refused(status, "POST", "/api/v1/models", {"name": name})


@pytest.mark.parametrize(
    ("name_filter", "names"),
    [
        ("mnist", ["mnist"]),  # the published client looks up models by name so, and must find one
        ("mnist2", ["mnist2"]),
        ("MNIST", ["MNIST"]),
        ("mni", []),
        ("mnist%", ["mnist", "mnist2", "MNIST"]),
        ("%NIST2", ["mnist2", "xmnist2"]),
        ("%ni%", ["mnist", "mnist2", "xmnist2", "MNIST"]),
        ("50%", ["50%"]),
        ("m.ist", []),
        ("m.ist%", []),
        ("%", ["digits", "mnist", "mnist2", "xmnist2", "MNIST", "50%"]),
        ("m%%n%t", ["mnist", "MNIST"]),
        ("mn%ist%ist", []),
        ("%n%n%", []),
    ],
)
def test_models_are_found_by_their_whole_name_or_by_a_pattern(registry, name_filter, names):
    for name in ("mnist", "mnist2", "xmnist2", "MNIST", "50%"):
        registry.post("/api/v1/models", {"name": name})
    assert [model["name"] for model in registry.get("/api/v1/models", name=name_filter)["models"]] == names


def test_a_pattern_costs_no_more_than_the_names_it_is_compared_with(registry, longest_turn):
    """With one model, this question once took for ever, and with it everybody's."""
    registry.post("/api/v1/models", {"name": "a" * 250})
    assert registry.get("/api/v1/models", name="%a" * 60 + "%b")["models"] == []
    assert len(registry.get("/api/v1/models", name="%a" * 60 + "%")["models"]) == 1
    longest_turn.check()


def test_lists(registry):
    registry.post("/api/v1/models", {"name": "words", "labels": ["b"]})
    register(registry)

    def names(**params):
        return [model["name"] for model in registry.get("/api/v1/models", **params)["models"]]

    assert names() == ["digits", "words"]
    assert names(sortBy="SORT_BY_NUM_VERSIONS") == ["words", "digits"]
    assert names(sortBy="SORT_BY_NAME", orderBy="ORDER_BY_DESC") == ["words", "digits"]
    assert names(name="digits") == ["digits"]
    assert names(description="") == ["digits", "words"]
    assert names(labels=["a", "b"]) == ["digits"]
    assert names(id=2) == ["words"]
    assert names(users="admin") == []
    assert names(workspaceIds=1) == ["digits", "words"]
    assert names(workspaceNames="Nowhere") == []
    assert registry.get("/api/v1/model/labels")["labels"] == ["b", "a"]
    assert "SORT_BY_" in registry.refused(400, "GET", "/api/v1/models", params={"sortBy": "SORT_BY_TASTE"})


def test_versions_count_and_numbers_are_not_used_twice(registry):
    first = register(registry, name="one", comment="c", notes="n")
    assert (first["version"], first["name"], first["comment"], first["notes"]) == (1, "one", "c", "n")
    assert first["checkpoint"]["uuid"] == UUIDS[0]
    assert first["model"]["numVersions"] == 1
    assert register(registry, UUIDS[1])["version"] == 2
    assert registry.send("DELETE", "/api/v1/models/digits/versions/2").status_code == 200
    assert register(registry, UUIDS[1])["version"] == 3
    answer = registry.get("/api/v1/models/1/versions", orderBy="ORDER_BY_DESC")
    assert [version["version"] for version in answer["modelVersions"]] == [3, 1]
    assert registry.get("/api/v1/models/1/versions/1")["modelVersion"]["name"] == "one"
    assert "not found" in registry.refused(404, "GET", "/api/v1/models/1/versions/2")


def test_versions_are_described_otherwise(registry):
    register(registry)
    path = "/api/v1/models/digits/versions/1"
    changed = registry.send("PATCH", path, {"name": "x", "notes": "y", "metadata": {"a": 1}}).json()
    version = changed["modelVersion"]
    assert (version["name"], version["notes"], version["metadata"]) == ("x", "y", {"a": 1})
    assert registry.get(path)["modelVersion"]["comment"] == ""


def test_only_known_checkpoints(registry):
    path = "/api/v1/models/digits/versions"
    assert "checkpoint 'none' not found" in registry.refused(404, "POST", path, {"checkpointUuid": "none"})
    assert "checkpointUuid" in registry.refused(400, "POST", path, {})
    registry.send("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [UUIDS[1]]})
    assert "being deleted" in registry.refused(400, "POST", path, {"checkpointUuid": UUIDS[1]})


def test_what_is_registered_stays(registry):
    register(registry)
    message = registry.refused(400, "DELETE", "/api/v1/checkpoints", {"checkpointUuids": list(UUIDS)})
    assert "registered as a version of model 'digits'" in message
    assert "registered as model versions" in registry.refused(400, "DELETE", "/api/v1/experiments/1")
    assert not registry.catalogue.checkpoint(UUIDS[1]).going
    registry.send("DELETE", "/api/v1/models/digits")
    assert registry.get("/api/v1/models")["models"] == []
    registry.send("DELETE", "/api/v1/checkpoints", {"checkpointUuids": list(UUIDS)})
    assert all(registry.catalogue.checkpoint(uuid).going for uuid in UUIDS)


def test_what_is_archived_does_not_change(registry):
    registry.post("/api/v1/models/digits/archive")
    assert registry.get("/api/v1/models", archived=True)["models"][0]["archived"] is True
    assert "is archived" in registry.refused(400, "PATCH", "/api/v1/models/digits", {"description": "x"})
    body = {"checkpointUuid": UUIDS[0]}
    assert "is archived" in registry.refused(400, "POST", "/api/v1/models/digits/versions", body)
    registry.post("/api/v1/models/digits/unarchive")
    refused = registry.refused(400, "PATCH", "/api/v1/models/digits", {"labels": 3})
    assert refused == "labels: Input should be a valid list"
    changed = registry.send("PATCH", "/api/v1/models/digits", {"description": "x", "labels": []}).json()
    assert (changed["model"]["description"], changed["model"]["labels"]) == ("x", [])


def test_models_are_renamed(registry):
    changed = registry.send("PATCH", "/api/v1/models/digits", {"name": "numbers", "notes": "n"}).json()
    assert (changed["model"]["name"], changed["model"]["notes"], changed["model"]["id"]) == (
        "numbers",
        "n",
        1,
    )
    registry.refused(404, "GET", "/api/v1/models/digits")


def test_models_move_between_workspaces(registry):
    registry.post("/api/v1/workspaces", {"name": "Vision"})
    registry.post("/api/v1/models/digits/move", {"destinationWorkspaceId": 2})
    assert registry.get("/api/v1/models/digits")["model"]["workspaceId"] == 2
    assert "holds models" in registry.refused(400, "DELETE", "/api/v1/workspaces/2")
    made = registry.post("/api/v1/models", {"name": "m", "workspaceName": "Vision"})["model"]
    assert made["workspaceId"] == 2


def test_the_checkpoint_of_a_version_shows_what_was_reported_at_its_step(registry):
    payload = {"id": 1, "trial_id": 1, "run": 1, "steps_completed": 10, "at": 0.0}
    rows = [{**payload, "group": "validation", "metrics": {"loss": 0.25}}]
    registry.peers.values[queries.Reports] = {"rows": rows, "more": False}
    register(registry)
    (version,) = registry.get("/api/v1/models/digits/versions")["modelVersions"]
    for shown in (version, registry.get("/api/v1/models/digits/versions/1")["modelVersion"]):
        assert shown["checkpoint"]["training"]["validationMetrics"]["avgMetrics"] == {"loss": 0.25}

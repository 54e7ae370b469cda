"""The model registry and users."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from determined.common.api.errors import APIException, NotFoundException
from determined.experimental import client
from determined.transport import identity
from tests.sdk.fake_gateway import Status

MODEL = {
    "id": 5,
    "name": "mnist",
    "description": "digits",
    "creationTime": "2026-01-01T00:00:00Z",
    "lastUpdatedTime": "2026-01-02T00:00:00Z",
    "metadata": {"a": 1},
    "labels": ["x"],
    "username": "ann",
    "archived": False,
    "workspaceId": 1,
    "numVersions": 2,
}
PATH = "/api/v1/models/5"


@pytest.fixture
def version(checkpoint_record):
    def tell(number, **more):
        return {
            "id": 70 + number,
            "version": number,
            "model": MODEL,
            "checkpoint": checkpoint_record("a"),
            **more,
        }

    return tell


@pytest.fixture
def model(master, connection):
    master.answer("GET", "/api/v1/models/mnist", {"model": MODEL})
    return connection.get_model("mnist")


def changed(master):
    """The gateway takes what it is told into the model."""
    master.answer("PATCH", PATH, lambda call: {"model": {**MODEL, **call.json}})


def test_attributes(model):
    assert (model.model_id, model.name, model.description) == (5, "mnist", "digits")
    assert (model.metadata, model.labels, model.username) == ({"a": 1}, ["x"], "ann")
    assert (model.archived, model.workspace_id) == (False, 1)
    assert model.creation_time == datetime(2026, 1, 1, tzinfo=UTC)
    assert repr(model) == 'Model(id=5, name=mnist, metadata={"a": 1})'
    assert model.to_json()["id"] == 5
    assert json.loads(json.dumps(model.to_json()))["creation_time"].startswith("2026-01-01T00:00:00")
    assert model.to_json()["labels"] == ["x"]


def test_create(master, connection):
    master.answer("POST", "/api/v1/models", {"model": MODEL})
    assert client.create_model("mnist", "digits", {"a": 1}).model_id == 5
    assert master.calls[-1].json == {"name": "mnist", "description": "digits", "metadata": {"a": 1}}
    connection.create_model("mnist", labels=["x"], workspace_name="w")
    assert master.calls[-1].json == {
        "name": "mnist",
        "description": "",
        "labels": ["x"],
        "workspaceName": "w",
    }


def test_find(master, connection):
    master.answer("GET", "/api/v1/models", {"models": [MODEL], "pagination": {"total": 1}})
    assert [listed_model.name for listed_model in client.get_models()] == ["mnist"]
    query = master.calls[-1].query
    assert (query["sortBy"], query["orderBy"]) == (["SORT_BY_NAME"], ["ORDER_BY_ASC"])
    connection.get_models(
        client.ModelSortBy.CREATION_TIME,
        client.ModelOrderBy.DESC,
        name="m",
        description="d",
        model_id=5,
        workspace_names=["w"],
        workspace_ids=[1, 2],
    )
    query = master.calls[-1].query
    assert {key: query[key] for key in ("name", "description", "id", "workspaceNames", "workspaceIds")} == {
        "name": ["m"],
        "description": ["d"],
        "id": ["5"],
        "workspaceNames": ["w"],
        "workspaceIds": ["1", "2"],
    }
    master.answer("GET", "/api/v1/model/labels", {"labels": ["x", "y"]})
    assert client.get_model_labels() == ["x", "y"]


def test_by_number(master, connection):
    master.answer("GET", PATH, {"model": MODEL})
    assert connection.get_model(5).name == "mnist"
    with pytest.warns(FutureWarning):
        assert client.get_model_by_id(5).name == "mnist"


def test_a_name_with_slashes(master, connection):
    master.answer("GET", "/api/v1/models/a%2Fb", {"model": {**MODEL, "name": "a/b"}})
    assert connection.get_model("a/b").name == "a/b"


def test_setters(master, model):
    changed(master)
    model.add_metadata({"b": 2})
    assert model.metadata == {"a": 1, "b": 2}
    model.remove_metadata(["a", "nope"])
    assert model.metadata == {"b": 2}
    model.set_labels(["y", "z"])
    assert model.labels == ["y", "z"]
    model.set_description("new")
    assert model.description == "new"
    for verb, after in (("archive", True), ("unarchive", False)):
        master.answer("POST", f"{PATH}/{verb}", {})
        getattr(model, verb)()
        assert model.archived is after


def test_setters_change_nothing_when_refused(master, model):
    refused = Status(400, {"error": {"error": "archived"}})
    master.answer("PATCH", PATH, refused)
    master.answer("POST", f"{PATH}/archive", refused)
    calls = (
        lambda: model.add_metadata({"b": 2}),
        lambda: model.set_labels(["y"]),
        lambda: model.set_description("new"),
        model.archive,
    )
    for call in calls:
        with pytest.raises(APIException, match="archived"):
            call()
    assert (model.metadata, model.labels, model.description, model.archived) == (
        {"a": 1},
        ["x"],
        "digits",
        False,
    )


def test_move_and_delete(master, model):
    spaces = [{"id": 8, "name": "vision too"}, {"id": 9, "name": "vision"}]
    master.answer("GET", "/api/v1/workspaces", {"workspaces": spaces, "pagination": {"total": 2}})
    master.answer("POST", f"{PATH}/move", {})
    model.move_to_workspace("vision")
    assert model.workspace_id == 9
    assert master.calls[-1].json == {"destinationWorkspaceId": 9}
    with pytest.raises(NotFoundException, match="nowhere"):
        model.move_to_workspace("nowhere")
    master.answer("DELETE", PATH, {})
    assert model.delete() is None


def test_versions(master, model, version):
    master.answer("POST", f"{PATH}/versions", {"modelVersion": version(1, name="first")})
    made = model.register_version("a")
    assert master.calls[-1].json == {"checkpointUuid": "a"}
    assert (made.model_version, made.model_version_id, made.model_id, made.model_name) == (1, 71, 5, "mnist")
    assert (made.name, made.comment, made.notes, made.metadata) == ("first", "", "", {})
    assert made.checkpoint.uuid == "a"
    listed = {"modelVersions": [version(2), version(1)], "pagination": {"total": 2}}
    master.answer("GET", f"{PATH}/versions", listed)
    assert [listed_version.model_version for listed_version in model.get_versions()] == [2, 1]
    assert master.calls[-1].query["orderBy"] == ["ORDER_BY_DESC"]
    assert model.get_version().model_version == 2
    master.answer("GET", f"{PATH}/versions/1", {"modelVersion": version(1)})
    assert model.get_version(1).model_version == 1
    with pytest.raises(NotFoundException):
        model.get_version(9)
    master.answer("GET", f"{PATH}/versions", {"modelVersions": [], "pagination": {"total": 0}})
    assert model.get_version() is None


def test_changes_of_a_version(master, model, version):
    master.answer("GET", f"{PATH}/versions/1", {"modelVersion": version(1)})
    first_version = model.get_version(1)
    with pytest.raises(NotFoundException):
        first_version.set_name("x")
    assert first_version.name == ""
    master.answer("PATCH", f"{PATH}/versions/1", lambda call: {"modelVersion": version(1, **call.json)})
    first_version.set_name("best")
    assert first_version.name == "best"
    first_version.set_notes("of all")
    assert first_version.notes == "of all"
    master.answer("DELETE", f"{PATH}/versions/1", {})
    assert first_version.delete() is None


ANN = {
    "id": 4,
    "username": "ann",
    "admin": False,
    "active": True,
    "remote": False,
    "displayName": "Ann",
    "agentUserGroup": None,
}


@pytest.fixture
def ann(master, connection):
    master.answer("GET", "/api/v1/users/4", {"user": ANN})
    return connection.get_user_by_id(4)


def test_users_are_found(master, ann):
    assert (ann.user_id, ann.username, ann.admin, ann.active, ann.remote) == (4, "ann", False, True, False)
    assert (ann.display_name, ann.agent_uid) == ("Ann", None)
    master.answer("GET", "/api/v1/users/ann/by-username", {"user": ANN})
    assert client.get_user_by_name("ann").user_id == 4
    assert client.get_user_by_id(4).username == "ann"
    master.answer("GET", "/api/v1/users", {"users": [ANN]})
    assert [user.username for user in client.list_users()] == ["ann"]
    master.answer("GET", "/api/v1/me", {"user": ANN})
    assert client.whoami().username == "ann"


def test_create_user(master, connection):
    master.answer("POST", "/api/v1/users", {"user": ANN})
    assert client.create_user("ann", admin=True, password="p").user_id == 4
    body = master.calls[-1].json
    assert body["user"] == {"username": "ann", "admin": True, "active": True, "remote": False}
    assert (body["password"], body["isHashed"]) == (identity.hashed("p"), True)


def test_changes_of_a_user(master, ann):
    with pytest.raises(NotFoundException):
        ann.rename("anna")
    assert ann.username == "ann"
    master.answer("PATCH", "/api/v1/users/4", lambda call: {"user": {**ANN, **call.json}})
    ann.rename("anna")
    assert ann.username == "anna"
    ann.deactivate()
    assert ann.active is False
    ann.activate()
    assert ann.active is True
    ann.change_display_name("A")
    assert ann.display_name == "A"
    ann.link_with_agent(agent_gid=1, agent_uid=2, agent_group="g", agent_user="u")
    assert (ann.agent_gid, ann.agent_uid, ann.agent_group, ann.agent_user) == (1, 2, "g", "u")
    master.answer("POST", "/api/v1/users/4/password", {"user": ANN})
    ann.change_password("new")
    assert master.calls[-1].json == identity.hashed("new")


WHOLE_LISTS = {"models", "users", "checkpoints", "by-username"}
"""What a path with an empty name would ask for."""


@pytest.mark.parametrize(
    "ask", [client.get_model, client.get_user_by_name, client.get_user_by_id, client.get_checkpoint]
)
def test_an_empty_name_is_refused_and_asks_for_nothing(connection, master, ask):
    with pytest.raises(ValueError, match="a name or an id is expected"):
        ask("")
    assert not [call for call in master.calls if call.path.rstrip("/").split("/")[-1] in WHOLE_LISTS]


def test_an_order_that_is_none_is_refused(connection):
    with pytest.raises(TypeError, match=r"sort_by must be a member of an enumeration .*, not 'name'"):
        client.get_models(sort_by="name")

"""`det user create` and its kin, `det workspace`, `det project`, `det model`, `det master`."""

from __future__ import annotations

import io
import json

import pytest

from determined.transport import identity
from determined.transport.token_store import TokenStore
from tests.sdk.fake_gateway import Lines

ANN = {"id": 4, "username": "ann", "active": True}
MODEL = {"id": 5, "name": "mnist", "labels": ["x"], "numVersions": 1, "creationTime": "2026-01-01T00:00:00Z"}
VERSION = {"version": 2, "model": MODEL, "checkpoint": {"uuid": "u-1", "training": {"trialId": 3}}}


@pytest.fixture
def typed(monkeypatch):
    def type_lines(*lines):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return type_lines


@pytest.fixture
def users(master):
    master.answer("POST", "/api/v1/users", {"user": ANN})
    master.answer("GET", "/api/v1/users/ann/by-username", {"user": ANN})
    master.answer("GET", "/api/v1/users/determined/by-username", {"user": {"id": 1}})
    master.answer("PATCH", "/api/v1/users/4", {"user": ANN})
    master.answer("GET", "/api/v1/permissions/summary", permissions("ADMINISTRATE_USER"))
    return master


def permissions(*kinds, everywhere=True):
    role = {"roleId": 1, "name": "R", "permissions": [{"id": f"PERMISSION_TYPE_{kind}"} for kind in kinds]}
    scope = {"roleId": 1, "scopeWorkspaceIds": [] if everywhere else [2], "scopeCluster": everywhere}
    return {"roles": [role], "assignments": [scope]}


def test_create_a_user(users, det, typed):
    typed("secret", "secret")
    done = det("user", "create", "ann", "--admin")
    assert (done.status, done.out) == (0, "Created user 'ann'\n")
    assert "New password for user 'ann':" in done.err
    assert "Confirm password:" in done.err
    body = users.calls_to("POST", "/api/v1/users")[0].json
    assert body["user"] == {"username": "ann", "admin": True, "active": True, "remote": False}
    assert body["password"] == identity.hashed("secret")


def test_passwords_must_be_the_same(users, det, typed):
    typed("secret", "secrte")
    done = det("u", "create", "ann")
    assert (done.status, "the two passwords differ" in done.err) == (1, True)
    assert users.calls_to("POST", "/api/v1/users") == []


def test_a_script_without_a_new_password_learns_how_to_pass_it(users, det, typed):
    typed()
    done = det("u", "create", "ann")
    assert (done.status, "pipe it to this command in two lines" in done.err) == (1, True)
    assert "DET_PASS" not in done.err


@pytest.mark.parametrize("words", ["create bob", "change-password ann"])
@pytest.mark.parametrize(
    "held",
    [
        {"roles": [], "assignments": []},
        permissions("VIEW_EXPERIMENT_METADATA"),
        permissions("ADMINISTRATE_USER", everywhere=False),
    ],
)
def test_nobody_types_a_password_in_vain(users, det, typed, words, held):
    users.answer("GET", "/api/v1/permissions/summary", held)
    typed("secret", "secret")
    done = det("u", *words.split())
    assert (done.status, "permission to administer users" in done.err) == (1, True)
    assert "New password" not in done.err
    assert not [call for call in users.calls if call.method == "POST" and "users" in call.path]


def test_a_remote_user_has_no_password(users, det, typed):
    typed()
    assert det("u", "create", "--remote", "ann").status == 0
    assert users.calls_to("POST", "/api/v1/users")[0].json["password"] == ""


def test_change_the_password_of_another(users, det, typed):
    users.answer("POST", "/api/v1/users/4/password", {"user": ANN})
    typed("new", "new")
    assert det("u", "change-password", "ann").status == 0
    assert users.calls_to("POST", "/api/v1/users/4/password")[0].json == identity.hashed("new")


def test_change_ones_own_password(users, det, typed):
    users.answer("POST", "/api/v1/users/1/password", {"user": ANN})
    users.answer(
        "POST",
        "/api/v1/auth/login",
        lambda call: {"token": f"for {call.json['password'][:4]}", "user": {}},
    )
    typed("new", "new")
    assert det("u", "change-password").status == 0
    assert TokenStore(users.url).token("determined") == f"for {identity.hashed('new')[:4]}"


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (["activate", "ann"], {"active": True}),
        (["deactivate", "ann"], {"active": False}),
        (["rename", "ann", "anna"], {"username": "anna"}),
        (
            [
                "link-with-agent-user",
                "ann",
                "--agent-uid",
                "2",
                "--agent-user",
                "u",
                "--agent-gid",
                "1",
                "--agent-group",
                "g",
            ],
            {"agentUserGroup": {"agentUid": 2, "agentUser": "u", "agentGid": 1, "agentGroup": "g"}},
        ),
    ],
)
def test_changes_of_users(users, det, words, sent):
    assert det("user", *words).status == 0
    assert [call.json for call in users.calls_to("PATCH", "/api/v1/users/4")] == [sent]


def test_an_unknown_user(users, det):
    assert det("u", "activate", "nobody").status == 1
    assert det("u", "link-with-agent-user", "ann").status == 2


SPACE = {"id": 9, "name": "vision", "numProjects": 1, "numExperiments": 2, "archived": False}
PROJECT = {"id": 11, "name": "digits", "description": "d", "numExperiments": 2, "archived": False}


@pytest.fixture
def places(master):
    master.answer("GET", "/api/v1/workspaces", {"workspaces": [SPACE], "pagination": {"total": 1}})
    master.answer("GET", "/api/v1/workspaces/9/projects", {"projects": [PROJECT], "pagination": {"total": 1}})
    for path, key, place in (("workspaces/9", "workspace", SPACE), ("projects/11", "project", PROJECT)):
        for method in ("GET", "PATCH"):
            master.answer(method, f"/api/v1/{path}", {key: place})
        master.answer("DELETE", f"/api/v1/{path}", {})
        for verb in ("archive", "unarchive"):
            master.answer("POST", f"/api/v1/{path}/{verb}", {})
    master.answer("POST", "/api/v1/workspaces", {"workspace": SPACE})
    master.answer("POST", "/api/v1/workspaces/9/projects", {"project": PROJECT})
    return master


def test_the_columns_of_0_25_come_first(places, det):
    space = SPACE | {"agentUserGroup": {"agentUid": 7}, "defaultAuxPool": "aux"}
    places.answer("GET", "/api/v1/workspaces", {"workspaces": [space], "pagination": {"total": 1}})
    header, _, row = (
        [cell.strip() for cell in line.split("|")] for line in det("w", "list").out.splitlines()
    )
    assert header == [
        *("ID", "Name", "# Projects", "Agent Uid", "Agent Gid", "Agent User", "Agent Group"),
        *("Default Compute Pool", "Default Aux Pool", "# Experiments", "Archived"),
    ]
    assert row == ["9", "vision", "1", "7", "", "", "", "", "aux", "2", "False"]


@pytest.mark.parametrize("words", ["create vision", "describe vision", "edit vision --name eyes"])
def test_the_storage_of_one_workspace_is_shown(places, det, words):
    space = {"workspace": SPACE | {"checkpointStorageConfig": {"type": "s3", "bucket": "b"}}}
    places.answer("POST", "/api/v1/workspaces", space)
    for method in ("GET", "PATCH"):
        places.answer(method, "/api/v1/workspaces/9", space)
    header, _, row = det("w", *words.split()).out.splitlines()[:3]
    shown = dict(zip(map(str.strip, header.split("|")), map(str.strip, row.split("|")), strict=True))
    assert shown["Checkpoint Storage Config"] == "{'type': 's3', 'bucket': 'b'}"


def test_workspaces(places, det):
    assert "vision" in det("w").out
    assert json.loads(det("workspace", "list", "--json").out) == [SPACE]
    assert "digits" in det("w", "list-projects", "vision").out
    assert det("w", "create", "vision").status == 0
    assert places.calls_to("POST", "/api/v1/workspaces")[0].json == {"name": "vision"}
    assert json.loads(det("w", "describe", "vision", "--json").out) == SPACE
    assert "Associated Projects" in (output := det("w", "describe", "vision").out)
    assert "digits" in output
    assert det("w", "edit", "vision", "--name", "eyes").status == 0
    assert places.calls_to("PATCH", "/api/v1/workspaces/9")[0].json == {"name": "eyes"}
    own = {"checkpointStorageConfig": {"type": "shared_fs"}, "agentUserGroup": {"agentUid": 7}}
    storage = ("--checkpoint-storage-config", '{"type": "shared_fs"}')
    det("workspace", "edit", "vision", "--agent-uid", 7, *storage)
    assert places.calls_to("PATCH", "/api/v1/workspaces/9")[1].json == own
    det("workspace", "create", "vision", "--agent-uid", 7, *storage)
    assert places.calls_to("POST", "/api/v1/workspaces")[1].json == {"name": "vision"} | own
    for wrong in ((), ("--checkpoint-storage-config", "[1]"), ("--checkpoint-storage-config", "{")):
        assert det("workspace", "edit", "vision", *wrong).status == 1
    assert det("w", "archive", "vision").out == "Successfully archived workspace vision.\n"
    assert det("w", "delete", "vision", "--yes").out == "Successfully deleted workspace vision.\n"
    assert det("w", "describe", "nowhere").status == 1


def test_projects(places, det, monkeypatch):
    assert "digits" in det("p", "list", "vision").out
    assert det("p", "create", "vision", "digits", "--description", "d").status == 0
    sent = places.calls_to("POST", "/api/v1/workspaces/9/projects")[0].json
    assert sent == {"name": "digits", "description": "d"}
    assert json.loads(det("project", "describe", "vision", "digits", "--json").out) == PROJECT
    experiment = {"id": 7, "username": "ann", "name": "mnist", "state": "STATE_ACTIVE", "archived": False}
    places.answer("GET", "/api/v1/experiments", {"experiments": [experiment], "pagination": {"total": 1}})
    for words in (["describe"], ["list-experiments"]):
        assert "mnist" in det("project", *words, "vision", "digits").out
        query = places.calls[-1].query
        assert (query["projectId"], query["archived"], query["users"]) == (["11"], ["false"], ["determined"])
        assert "Archived" in det("project", *words, "vision", "digits", "-a").out
        assert "users" not in places.calls[-1].query
    assert json.loads(det("p", "list-experiments", "vision", "digits", "--json").out) == [experiment]
    assert det("p", "edit", "vision", "digits", "--new_name", "n").status == 0
    assert places.calls_to("PATCH", "/api/v1/projects/11")[0].json == {"name": "n"}
    assert det("p", "unarchive", "vision", "digits").out == "Successfully un-archived project digits.\n"
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert "Aborting" in det("p", "delete", "vision", "digits").out
    assert det("p", "delete", "vision", "digits", "--yes").status == 0
    assert len(places.calls_to("DELETE", "/api/v1/projects/11")) == 1
    assert det("p", "describe", "vision", "none").status == 1
    places.answer("POST", "/api/v1/experiments/7/move", {})
    assert det("e", "move", 7, "vision", "digits").out == 'Moved experiment 7 to project "digits"\n'
    assert places.calls_to("POST", "/api/v1/experiments/7/move")[0].json == {"destinationProjectId": 11}


@pytest.fixture
def models(master):
    master.answer("GET", "/api/v1/models", {"models": [MODEL], "pagination": {"total": 1}})
    master.answer("POST", "/api/v1/models", {"model": MODEL})
    for name in ("mnist", "5"):
        master.answer("GET", f"/api/v1/models/{name}", {"model": MODEL})
        master.answer("GET", f"/api/v1/models/{name}/versions", {"modelVersions": [VERSION]})
    master.answer("GET", "/api/v1/models/mnist/versions/2", {"modelVersion": VERSION})
    master.answer("POST", "/api/v1/models/mnist/versions", {"modelVersion": VERSION})
    return master


def test_models_have_the_columns_and_the_names_of_0_25(models, det):
    whole = MODEL | {"creationTime": "2026-01-01T00:00:00Z", "lastUpdatedTime": "2026-01-02T00:00:00Z"}
    models.answer("GET", "/api/v1/models", {"models": [whole], "pagination": {"total": 1}})
    models.answer("GET", "/api/v1/models/mnist", {"model": whole})
    listed, described = (
        [cell.strip() for cell in det("m", *words).out.splitlines()[0].split("|")]
        for words in (["list"], ["describe", "mnist"])
    )
    assert listed[:6] == [
        *("ID", "Name", "Workspace ID", "Creation Time", "Last Updated Time", "Metadata"),
    ]
    assert described[:7] == [
        *("ID", "Name", "Description", "Workspace ID", "Creation Time", "Last Updated Time", "Metadata"),
    ]
    for words in (["list"], ["describe", "mnist"]):
        output = json.loads(det("m", *words, "--json").out)
        model = output[0] if isinstance(output, list) else output
        assert model["creation_time"] == "2026-01-01T00:00:00+00:00"
        assert model["last_updated_time"] == "2026-01-02T00:00:00+00:00"
        assert model["name"] == "mnist"


def test_models(models, places, det):
    assert "mnist" in det("m").out
    words = ("--sort-by", "name", "--order-by", "desc", "-w", "a,b", "--json")
    times = {"creation_time": "2026-01-01T00:00:00+00:00", "last_updated_time": None}
    assert json.loads(det("model", "list", *words).out) == [MODEL | times]
    query = models.calls[-1].query
    assert (query["sortBy"], query["orderBy"]) == (["SORT_BY_NAME"], ["ORDER_BY_DESC"])
    assert query["workspaceNames"] == ["a", "b"]
    assert "mnist" in det("m", "create", "mnist", "-w", "vision").out
    assert models.calls_to("POST", "/api/v1/models")[0].json == {"name": "mnist", "workspaceName": "vision"}
    assert "u-1" in det("m", "describe", "mnist").out
    output = json.loads(det("m", "describe", "mnist", "--version", 2, "--json").out)
    assert output == MODEL | times | {"model": MODEL, "modelVersions": [VERSION]}
    assert "version 2 of model mnist" in det("m", "register-version", "mnist", "u-1").out
    assert models.calls_to("POST", "/api/v1/models/mnist/versions")[0].json == {"checkpointUuid": "u-1"}
    output = json.loads(det("m", "register-version", "mnist", "u-1", "--json").out)
    assert output == {"modelVersion": VERSION}
    output = json.loads(det("m", "list-versions", "mnist", "--json").out)
    assert output["modelVersions"] == [VERSION]
    models.answer("POST", "/api/v1/models/5/move", {})
    for words in (["vision"], ["-w", "vision"]):
        assert det("m", "move", "mnist", *words).out == "Moved model mnist to workspace vision\n"
    assert "give the target workspace: -w WORKSPACE" in det("m", "move", "mnist").err
    det("m", "create", "mnist", "--description", "d")
    assert models.calls_to("POST", "/api/v1/models")[-1].json == {"name": "mnist", "description": "d"}
    for name in ("creation_time", "creation-time"):
        det("m", "list", "--sort-by", name)
        assert models.calls[-1].query["sortBy"] == ["SORT_BY_CREATION_TIME"]
    assert det("m", "describe", "none").status == 1


def test_master(master, det):
    master.answer("GET", "/api/v1/master/config", {"config": {"port": 8080}})
    assert det("master", "config").out == "port: 8080\n"
    assert json.loads(det("master", "config", "--json").out) == {"port": 8080}
    entry = {"logEntry": {"id": 1, "message": "up\n", "timestamp": "2026-01-01T00:00:00Z"}}
    entry["logEntry"]["level"] = "LOG_LEVEL_INFO"
    master.answer("GET", "/api/v1/master/logs", Lines([{"result": entry}]))
    assert det("master", "logs", "--tail", 3).out == "2026-01-01T00:00:00Z [INFO]: up\n"
    assert master.calls[-1].query == {"offset": ["-3"], "limit": ["3"]}
    det("master", "logs", "-f")
    assert master.calls[-1].query == {"follow": ["true"]}

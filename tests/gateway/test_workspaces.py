"""Workspaces, projects, and where experiments are filed (REST spec, section 7)."""

from __future__ import annotations

import pytest

from det_contracts.events.gateway import ProjectSet
from services.people.commands import workspaces
from tests.gateway import stories as story

UNCATEGORIZED = "is permanent"


@pytest.fixture
def filed(gateway):
    """Workspace 2 with project 2 in it."""
    assert gateway.post("/api/v1/workspaces", {"name": "Vision"})["workspace"]["id"] == 2
    made = gateway.post("/api/v1/workspaces/2/projects", {"name": "Digits", "description": "d"})["project"]
    assert (made["id"], made["workspaceId"], made["workspaceName"]) == (2, 2, "Vision")
    return gateway


def test_the_first_ones_are_there(gateway):
    gateway.log_in("admin")
    (space,) = gateway.get("/api/v1/workspaces")["workspaces"]
    assert (space["id"], space["name"], space["immutable"]) == (1, "Uncategorized", True)
    assert space["numProjects"] == 1
    assert gateway.get("/api/v1/projects/1")["project"]["workspaceId"] == 1
    for method, path, body in (
        ("PATCH", "/api/v1/workspaces/1", {"name": "x"}),
        ("POST", "/api/v1/workspaces/1/archive", None),
        ("DELETE", "/api/v1/workspaces/1", None),
        ("PATCH", "/api/v1/projects/1", {"name": "x"}),
        ("POST", "/api/v1/projects/1/archive", None),
        ("DELETE", "/api/v1/projects/1", None),
    ):
        assert UNCATEGORIZED in gateway.refused(400, method, path, body)


def test_published_clients_look_a_whole_name_up(filed):
    def named(name):
        return [
            workspace["id"]
            for workspace in filed.get("/api/v1/workspaces", nameCaseSensitive=name)["workspaces"]
        ]

    assert (named("Vision"), named("vision"), named("Vis")) == ([2], [], [])


def test_a_user_makes_so_many_workspaces_and_projects(filed, monkeypatch):
    monkeypatch.setattr(workspaces, "MAX_WORKSPACES_EACH", 2)
    monkeypatch.setattr(workspaces, "MAX_PROJECTS_EACH", 2)
    for path, made in (("/api/v1/workspaces", "workspace"), ("/api/v1/workspaces/2/projects", "project")):
        second = filed.post(path, {"name": "b"})[made]["id"]
        assert f"has 2 {made}s already" in filed.refused(400, "POST", path, {"name": "c"})
        # Of another's they take none, and what is deleted makes room.
        filed.log_in("admin")
        filed.post(path, {"name": "hers"})
        filed.log_in()
        if made == "project":
            filed.send("DELETE", f"/api/v1/projects/{second}")
            assert filed.send("POST", path, {"name": "c"}).status_code == 200


def test_names_are_given_once(filed):
    assert "a workspace named 'vision' exists already" in filed.refused(
        409, "POST", "/api/v1/workspaces", {"name": "vision"}
    )
    assert "a project named" in filed.refused(
        409, "POST", "/api/v1/workspaces/2/projects", {"name": "Digits"}
    )
    assert "needs a name" in filed.refused(400, "POST", "/api/v1/workspaces", {})
    assert "needs a name" in filed.refused(400, "POST", "/api/v1/workspaces/2/projects", {"name": " "})
    assert filed.post("/api/v1/workspaces/1/projects", {"name": "Digits"})["project"]["id"] == 3


def test_experiments_move(filed):
    filed.apply(story.created(1), story.created(2))
    filed.post("/api/v1/experiments/1/move", {"destinationProjectId": 2})
    shown = filed.get("/api/v1/experiments/1")["experiment"]
    assert [shown[key] for key in ("projectId", "projectName", "workspaceId", "workspaceName")] == [
        2,
        "Digits",
        2,
        "Vision",
    ]
    assert [row["id"] for row in filed.get("/api/v1/experiments", projectId=2)["experiments"]] == [1]
    assert filed.get("/api/v1/projects/2")["project"]["numExperiments"] == 1
    assert filed.get("/api/v1/workspaces/2")["workspace"]["numExperiments"] == 1
    body = {"experimentIds": [1, 2, 9], "destinationProjectId": 1}
    results = filed.post("/api/v1/experiments/move", body)["results"]
    assert [(result["id"], bool(result["error"])) for result in results] == [
        (1, False),
        (2, False),
        (9, True),
    ]
    assert "project '9' not found" in filed.refused(
        404, "POST", "/api/v1/experiments/1/move", {"destinationProjectId": 9}
    )


def test_what_holds_experiments_cannot_go(filed):
    filed.apply(story.created(1))
    filed.post("/api/v1/experiments/1/move", {"destinationProjectId": 2})
    for path in ("/api/v1/projects/2", "/api/v1/workspaces/2"):
        assert "holds experiments (1 in all, such as 1)" in filed.refused(400, "DELETE", path)
    filed.post("/api/v1/experiments/1/move", {"destinationProjectId": 1})
    assert filed.send("DELETE", "/api/v1/workspaces/2").json() == {"completed": True}
    assert "not found" in filed.refused(404, "GET", "/api/v1/projects/2")
    assert "not found" in filed.refused(404, "GET", "/api/v1/workspaces/2/projects")


def test_what_is_archived_takes_nothing(filed):
    filed.apply(story.created(1))
    filed.post("/api/v1/workspaces/2/archive")
    assert filed.get("/api/v1/projects/2")["project"]["archived"] is True
    for path, body in (
        ("/api/v1/experiments/1/move", {"destinationProjectId": 2}),
        ("/api/v1/workspaces/2/projects", {"name": "New"}),
    ):
        assert "archived" in filed.refused(400, "POST", path, body)
    filed.post("/api/v1/workspaces/2/unarchive")
    filed.post("/api/v1/projects/2/archive")
    assert "archived" in filed.refused(400, "POST", "/api/v1/experiments/1/move", {"destinationProjectId": 2})
    filed.post("/api/v1/projects/2/unarchive")
    filed.post("/api/v1/experiments/1/move", {"destinationProjectId": 2})


def test_what_is_archived_is_not_changed_before_it_is_back(filed):
    filed.apply(story.created(1))
    filed.post("/api/v1/experiments/1/move", {"destinationProjectId": 2})
    filed.post("/api/v1/projects/2/archive")
    changes = (
        ("PATCH", "/api/v1/projects/2", {"name": "x"}),
        ("PATCH", "/api/v1/projects/2", {"description": "x"}),
        ("POST", "/api/v1/projects/2/notes", {"name": "x", "contents": "x"}),
        ("POST", "/api/v1/projects/2/move", {"destinationWorkspaceId": 1}),
        ("POST", "/api/v1/experiments/1/move", {"destinationProjectId": 1}),
    )
    for change in changes:
        assert "archived" in filed.refused(400, *change)
    filed.post("/api/v1/projects/2/unarchive")
    filed.post("/api/v1/workspaces/2/archive")
    whole = ("POST", "/api/v1/projects/2/archive"), ("PATCH", "/api/v1/workspaces/2", {"name": "x"})
    for change in (*changes, *whole):
        assert "archived" in filed.refused(400, *change)
    filed.post("/api/v1/workspaces/2/unarchive")
    filed.post("/api/v1/experiments/1/move", {"destinationProjectId": 1})


def test_pins_are_ones_own_and_come_first(filed):
    filed.post("/api/v1/workspaces/2/pin")
    assert [workspace["id"] for workspace in filed.get("/api/v1/workspaces")["workspaces"]] == [2, 1]
    down = filed.get("/api/v1/workspaces", orderBy="ORDER_BY_DESC")["workspaces"]
    assert [workspace["id"] for workspace in down] == [2, 1]
    filed.post("/api/v1/workspaces/1/pin")
    filed.post("/api/v1/workspaces/2/unpin")
    down = filed.get("/api/v1/workspaces", orderBy="ORDER_BY_DESC")["workspaces"]
    assert [workspace["id"] for workspace in down] == [1, 2]
    filed.post("/api/v1/workspaces/1/unpin")
    filed.post("/api/v1/workspaces/2/pin")
    filed.log_in("admin")
    assert [workspace["id"] for workspace in filed.get("/api/v1/workspaces")["workspaces"]] == [1, 2]
    filed.log_in()
    filed.post("/api/v1/workspaces/2/unpin")
    assert not any(workspace["pinned"] for workspace in filed.get("/api/v1/workspaces")["workspaces"])


def test_projects_are_renamed_noted_and_moved(filed):
    changed = filed.send("PATCH", "/api/v1/projects/2", {"name": "Numbers", "description": "n"}).json()
    assert (changed["project"]["name"], changed["project"]["description"]) == ("Numbers", "n")
    notes = [{"name": "a", "contents": "b"}]
    assert filed.post("/api/v1/projects/2/notes", notes[0])["notes"] == notes
    put = filed.send("PUT", "/api/v1/projects/2/notes", {"notes": [*notes, *notes]}).json()
    assert put["notes"] == [*notes, *notes]
    filed.post("/api/v1/projects/2/move", {"destinationWorkspaceId": 1})
    assert [project["id"] for project in filed.get("/api/v1/workspaces/1/projects")["projects"]] == [1, 2]


CONFIG = (
    "entrypoint: x\nsearcher: {name: single, metric: loss, max_length: 1}\nresources: {slots_per_trial: 1}\n"
)


@pytest.mark.parametrize(
    ("config", "project_id", "expected"),
    [
        (CONFIG, 0, 1),
        (CONFIG, 2, 2),
        (CONFIG + "workspace: Vision\nproject: Digits\n", 0, 2),
        (CONFIG + "workspace: Vision\nproject: Digits\n", 1, 1),
    ],
)
def test_where_a_new_experiment_goes(filed, config, project_id, expected):
    filed.apply(story.worker_here())
    commands = []
    filed.peers.on_command = lambda command: commands.append(command) or 1
    filed.send("POST", "/api/v1/experiments", {"config": config, "projectId": project_id})
    assert commands[0].project_id == expected


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ({"projectId": 9}, 404, "project '9' not found"),
        (
            {"config": CONFIG + "workspace: No\nproject: Digits\n"},
            404,
            "workspace 'No' not found; 'det workspace list'",
        ),
        (
            {"config": CONFIG + "workspace: Vision\nproject: No\n"},
            404,
            "project 'No' not found; 'det project list WORKSPACE' shows which there are in workspace 'Vi",
        ),
    ],
)
def test_a_place_that_is_not_there(filed, more, status, message):
    filed.apply(story.worker_here())
    assert message in filed.refused(status, "POST", "/api/v1/experiments", {"config": CONFIG, **more})
    assert filed.peers.commands[-1].user == "determined"
    assert len(filed.catalogue.state.experiments) == 0


def test_a_fork_goes_beside_its_parent(filed):
    filed.apply(story.worker_here(), story.created(1))
    filed.post("/api/v1/experiments/1/move", {"destinationProjectId": 2})
    commands = []
    filed.peers.on_command = lambda command: commands.append(command) or 1
    filed.send("POST", "/api/v1/experiments", {"config": CONFIG, "parentId": 1})
    assert commands[0].project_id == 2


def test_a_workspace_of_a_thousand_projects_goes_at_once(filed):
    """More events than one batch of the broker takes."""
    state = filed.runner.state
    made = [
        ProjectSet(project_id=id, workspace_id=2, name=f"p{id}", owner="ann", reason="made")
        for id in range(3, 1103)
    ]
    filed.apply(*made)
    assert len([p for p in state.projects.values() if p.workspace_id == 2]) == 1101
    assert filed.send("DELETE", "/api/v1/workspaces/2").status_code == 200
    assert [w["id"] for w in filed.get("/api/v1/workspaces")["workspaces"]] == [1]
    assert filed.send("GET", "/api/v1/projects/1000").status_code == 404
    assert filed.post("/api/v1/workspaces", {"name": "Vision"})["workspace"]["name"] == "Vision"

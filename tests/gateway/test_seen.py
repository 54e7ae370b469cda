"""What lists, searches and open pages show where roles decide: nothing of a workspace one may not see."""

from __future__ import annotations

import asyncio
import re

import pytest

from det_contracts.events import gateway
from services.live import channel
from services.rest_routes.routers import rights_table
from tests.gateway.harness import Harness
from tests.gateway.strangers import furnish, path_of
from tests.gateway.test_strangers_by_role import ELSEWHERE, HERE, ROLES

ROWS = rights_table()

OLGAS = re.compile(rb"olgas|Vision|Digits|\bdigits|\bc-1\b|\b1\.r1\b|\bown\b(?!\":)")
"""What stands in answers that show something of her workspace; `own` as a value, not as a field's name."""
KINDS = ("listed", "cluster")
ANYWHERE = {"logged_in", "view", "read_log"}
ENDLESS = {"/api/v1/live", "/api/v1/experiments/metrics-stream/metric-names", "/api/v1/master/logs"}
HOLDING = {
    "/api/v1/experiments", "/api/v1/experiments-search", "/api/v1/experiment/labels", "/api/v1/models",
    "/api/v1/model/checkpoints", "/api/v1/commands", "/api/v1/tensorboards", "/api/v1/tasks", "/tasks",
    "/api/v1/job-queues", "/api/v1/job-queues-v2", "/api/v1/templates", "/api/v1/workspaces",
    "/api/v1/cluster/slots", "/api/v1/projects/{id}/columns", "/det/live", "/prom/det-state-metrics",
}  # fmt: skip
"""Lists that do show something of hers to whoever may see it."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    harness = Harness(tmp_path_factory.mktemp("seen"))
    peers, append = harness.peers, harness.journal.append
    command, values = peers.command, peers.values
    furnish(
        harness,
        gateway.AuthzSet("rbac", "tried"),
        gateway.WorkspaceSet(workspace_id=ELSEWHERE, name="Speech", owner="egon", reason="made by egon"),
        *(gateway.RolesSet(who, (gateway.Grant(*what),), "given by admin") for who, what in ROLES.items()),
    )
    peers.command, peers.values, harness.journal.append = command, values, append
    yield harness
    harness.close()


def lists():
    """Every route that answers by GET with what its path does not name; and columns of all projects."""
    paths = {
        path for (method, path), row in ROWS.items() if method == "GET" and row.kind in ("listed", "cluster")
    }
    wanted = {path for path in paths if ROWS["GET", path].permission in ANYWHERE}
    return sorted((wanted - ENDLESS) | {"/api/v1/projects/{id}/columns"})


def shown(world, visitor, path):
    """The marks of Olga's that somebody's answer holds."""
    headers = {"Authorization": f"Bearer {world.tokens[visitor]}"}
    # The project 0 stands for all of them.
    real = "/api/v1/projects/0/columns" if path.startswith("/api/v1/projects") else path_of(path)
    answer = world.send("GET", real, params={"limit": "0"}, headers=headers)
    assert answer.status_code != 500, answer.text
    return (
        sorted({mark.decode() for mark in OLGAS.findall(answer.content)}) if answer.status_code == 200 else []
    )


def test_lists_show_nothing_of_a_workspace_that_one_may_not_see(world):
    leaks = {path: marks for path in lists() if (marks := shown(world, "victor", path))}
    assert leaks == {}


@pytest.mark.parametrize("visitor", ["vera", "olga", "admin"])
def test_lists_show_what_one_may_see(world, visitor):
    assert {path for path in HOLDING if not shown(world, visitor, path)} == set()
    assert set(lists()) >= HOLDING


def test_counts_are_of_what_one_may_see(world):
    def answer_for(visitor, path):
        headers = {"Authorization": f"Bearer {world.tokens[visitor]}"}
        return world.send("GET", f"/api/v1/{path}", headers=headers).json()

    assert answer_for("vera", "tasks/count")["commands"] == 1
    assert answer_for("victor", "tasks/count")["commands"] == 0
    for path, noun in (("experiments", 2), ("experiments-search", 2), ("workspaces", 1), ("models", 1)):
        assert answer_for("vera", path)["pagination"]["total"] == noun
    for path, noun in (("experiments", 0), ("experiments-search", 0), ("workspaces", 1), ("models", 0)):
        assert answer_for("victor", path)["pagination"]["total"] == noun


@pytest.mark.parametrize("topic", ["experiment.1", "trial.1", "trial.1.series", "task.1.r1"])
def test_a_page_is_notified_only_of_what_its_user_may_see(world, topic):
    headers = {"Authorization": f"Bearer {world.tokens['victor']}"}
    answer = world.send("GET", "/api/v1/live", params={"topics": f"experiments,{topic}"}, headers=headers)
    assert (answer.status_code, "not found" in answer.text) == (404, True)


def test_a_stream_ends_with_the_right_to_it(world, monkeypatch):
    monkeypatch.setattr(channel, "RECHECK_S", 0.0)
    monkeypatch.setattr(channel, "PING_S", 0.01)
    headers = {"Authorization": f"Bearer {world.tokens['vera']}"}
    back = gateway.RolesSet("user-5", (gateway.Grant(*ROLES["user-5"]),), "given back by admin")

    async def losing_the_role():
        url, topics = "/api/v1/live", {"topics": "experiment.1"}
        open_page = asyncio.create_task(world.client.get(url, params=topics, headers=headers))
        while not world.backend.live._open_pages:
            await asyncio.sleep(0)
        await world.append(gateway.RolesSet("user-5", (), "taken by admin"))
        return await open_page

    try:
        output = world.run(losing_the_role())
        assert (output.status_code, "event: ended" in output.text) == (200, True)
    finally:
        world.apply(back)


def test_the_names_of_runs_in_other_workspaces_are_hidden_on_slots(world):
    headers = {"Authorization": f"Bearer {world.tokens['victor']}"}
    slots = world.send("GET", "/api/v1/cluster/slots", headers=headers).json()["slots"]
    assert {run["name"] for slot in slots for run in slot["runs"]} == {"in another workspace"}


def test_moving_an_experiment_moves_who_sees_it(world):
    project = gateway.ProjectSet(
        project_id=9, workspace_id=ELSEWHERE, name="There", owner="egon", reason="made"
    )
    world.apply(project, gateway.ExperimentMoved(2, 9, "moved by admin"))
    try:
        for visitor, status in (("egon", 200), ("olga", 404)):
            headers = {"Authorization": f"Bearer {world.tokens[visitor]}"}
            assert world.send("GET", "/api/v1/experiments/2", headers=headers).status_code == status
    finally:
        world.apply(gateway.ExperimentMoved(2, HERE, "moved back by admin"))

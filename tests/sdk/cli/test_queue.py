"""`det job`, `resource-pool`, `template`, and switching agents and slots."""

import csv
import io
import json

import pytest

from determined import yamlfile
from tests.sdk.fake_gateway import Status

QUEUE = "/api/v1/job-queues"
JOB = {
    "jobId": "experiment-7",
    "type": "TYPE_EXPERIMENT",
    "name": "mnist",
    "entityId": "7",
    "priority": 42,
    "weight": 1,
    "submissionTime": "2023-08-01T12:00:00Z",
    "allocatedSlots": 1,
    "requestedSlots": 4,
    "resourcePool": "default",
    "summary": {"state": "STATE_QUEUED", "jobsAhead": 2},
    "username": "ann",
    "waitsFor": "It needs 4 slots, 1 of 8 is free.",
}


def bodies(master, method, path):
    return [call.json for call in master.calls_to(method, path)]


@pytest.fixture
def pools(master):
    """Three pools, each with a scheduler of its own; the first is the default."""
    kinds = {"default": "PRIORITY", "shared": "FAIR_SHARE", "turns": "ROUND_ROBIN"}
    resource_pools = [
        {"name": name, "schedulerType": f"SCHEDULER_TYPE_{kind}", "defaultComputePool": name == "default"}
        for name, kind in kinds.items()
    ]
    master.answer("GET", "/api/v1/resource-pools", {"resourcePools": resource_pools})
    return master


def test_the_queue_tells_what_each_waits_for(pools, master, det):
    unordered = JOB | {"summary": {"state": "STATE_SCHEDULED", "jobsAhead": -1}, "waitsFor": ""}
    master.answer("GET", QUEUE, {"jobs": [JOB, unordered], "pagination": {"total": 2}})
    first, second = csv.DictReader(io.StringIO(det("job", "list", "--csv", "-p", "default").out))
    assert (first["#"], first["Job Name"], first["Slots (acquired/needed)"]) == ("2", "mnist (7)", "1/4")
    assert first["Waits for"] == "It needs 4 slots, 1 of 8 is free."
    assert (second["#"], second["State"], second["Type"]) == ("N/A", "STATE_SCHEDULED", "TYPE_EXPERIMENT")
    table = det("job", "list").out
    assert "SCHEDULED" in table
    assert "STATE_" not in table
    assert master.calls_to("GET", QUEUE)[0].query["resourcePool"] == ["default"]
    assert json.loads(det("j", "ls", "--json").out)["jobs"][0]["jobId"] == "experiment-7"
    assert yamlfile.parse(det("j", "ls", "--yaml").out)["jobs"][1]["entityId"] == "7"


@pytest.mark.parametrize(
    ("words", "shown", "hidden"),
    [
        ([], ("Priority", "42"), "Weight"),
        (["-p", "shared"], ("Weight", "1"), "Priority"),
        (["-p", "turns"], ("Priority", "42"), "Weight"),
    ],
)
def test_the_queue_shows_what_its_order_comes_of(pools, det, words, shown, hidden):
    pools.answer("GET", QUEUE, {"jobs": [JOB], "pagination": {"total": 1}})
    (row,) = csv.DictReader(io.StringIO(det("job", "list", "--csv", *words).out))
    assert (shown in row.items(), hidden in row) == (True, False)
    assert list(row)[:4] == ["#", "ID", "Type", "Job Name"]


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (["--priority", 3], {"priority": 3}),
        (["-w", 2.5], {"weight": 2.5}),
        (["--resource-pool", "b"], {"resourcePool": "b"}),
        (["--ahead-of", "experiment-1"], {"aheadOf": "experiment-1"}),
        (["--behind-of", "experiment-1"], {"behindOf": "experiment-1"}),
    ],
)
def test_updates_are_sent(master, det, words, change):
    master.answer("POST", QUEUE, {})
    assert det("job", "update", "experiment-7", *words).status == 0
    assert bodies(master, "POST", QUEUE) == [{"updates": [{"jobId": "experiment-7", **change}]}]


def test_several_updates_go_together(master, det):
    master.answer("POST", QUEUE, {})
    assert (
        det("job", "update-batch", "experiment-1.priority=3", "experiment-2.ahead_of=experiment-1").status
        == 0
    )
    (body,) = bodies(master, "POST", QUEUE)
    assert body["updates"] == [
        {"jobId": "experiment-1", "priority": 3},
        {"jobId": "experiment-2", "aheadOf": "experiment-1"},
    ]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["update", "experiment-7"], 1, "nothing to change"),
        (["update-batch", "experiment-1.colour=red"], 1, "is not of the form JOB.OPERATION=VALUE"),
        (["update-batch", "experiment-1.priority=high"], 1, "is not a whole number"),
        (["update", "experiment-7", "--priority", "1", "--weight", "2"], 2, "not allowed with"),
    ],
)
def test_what_makes_no_sense_is_not_sent(master, det, words, status, message):
    done = det("job", *words)
    assert (done.status, message in done.err) == (status, True)
    assert bodies(master, "POST", QUEUE) == []


def test_refusals_of_the_queue_are_reported(master, det):
    refusal = {"error": {"code": 5, "reason": "NotFound", "error": "job of experiment '9' not found"}}
    master.answer("POST", QUEUE, Status(404, refusal))
    done = det("job", "update", "experiment-9", "--priority", 1)
    assert (done.status, "job of experiment '9' not found" in done.err) == (1, True)


def test_pools_in_one_table(master, det):
    pool = {
        "name": "gpus",
        "schedulerType": "SCHEDULER_TYPE_PRIORITY",
        "schedulerFittingPolicy": "FITTING_POLICY_WORST",
        "details": {"priorityScheduler": {"preemption": True}},
        "numAgents": 2,
        "slotsUsed": 3,
        "slotsAvailable": 8,
        "stats": {"scheduledCount": 1, "queuedCount": 4},
        "description": "fast",
    }
    master.answer("GET", "/api/v1/resource-pools", {"resourcePools": [pool]})
    (row,) = csv.DictReader(io.StringIO(det("rp", "list", "--csv").out))
    assert list(row.values()) == ["gpus", "priority, preempting", "worst", "2", "3/8", "1/4", "fast"]


def test_agents_are_switched_one_or_all(master, det):
    agents = [{"id": "a1"}, {"id": "a2"}]
    master.answer("GET", "/api/v1/agents", {"agents": agents})
    task = {"taskId": "t", "allocationId": "t.1", "name": "Trial 1", "registeredTime": "2023-08-01T12:00:00Z"}
    task["resources"] = [{"agentDevices": {"a1": {}}}]
    master.answer("GET", "/api/v1/tasks", {"allocationIdToSummary": {"t.1": task}})
    for id in ("a1", "a2"):
        master.answer("POST", f"/api/v1/agents/{id}/enable", {"agent": {}})
        master.answer("POST", f"/api/v1/agents/{id}/disable", {"agent": {}})
    done = det("agent", "disable", "a1", "--drain")
    assert done.out.startswith("Draining agent a1\n Task ID | ")
    assert "Trial 1" in done.out
    assert bodies(master, "POST", "/api/v1/agents/a1/disable") == [{"drain": True}]
    assert json.loads(det("agent", "disable", "a1", "--drain", "--json").out) == {"t.1": task}
    (row,) = csv.DictReader(io.StringIO(det("agent", "disable", "a1", "--drain", "--csv").out))
    assert (row["Task ID"], row["Agent"]) == ("t", "a1")
    assert "No tasks in progress" in det("agent", "disable", "a2", "--drain").out
    assert det("agent", "enable", "--all").out == "Enabled agent a1\nEnabled agent a2\n"
    for words in ([], ["a1", "--all"]):
        done = det("agent", "enable", *words)
        assert (done.status, "name one agent, or say --all" in done.err) == (1, True)


def test_slots_are_switched(master, det):
    for verb in ("enable", "disable"):
        master.answer("POST", f"/api/v1/agents/a1/slots/3/{verb}", {"slot": {}})
    assert det("slot", "disable", "a1", 3).out == "Disabled slot 3 of agent a1\n"
    assert det("slot", "disable", "a1", 3, "--drain").out == "Draining slot 3 of agent a1\n"
    assert det("slot", "enable", "a1", "x").status == 2
    assert det("slot", "enable", "a1", 3).out == "Enabled slot 3 of agent a1\n"
    assert bodies(master, "POST", "/api/v1/agents/a1/slots/3/disable") == [{"drain": False}, {"drain": True}]


def test_templates(master, det, tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text("max_restarts: 2\n")
    path, template = "/api/v1/templates/my%20lab", {"name": "my lab", "config": {"max_restarts": 2}}
    template["workspaceId"] = 9
    master.answer("GET", "/api/v1/workspaces", {"workspaces": [{"id": 9, "name": "vision"}]})
    master.answer("GET", "/api/v1/templates", {"templates": [template]})
    for method in ("GET", "PATCH", "PUT"):
        master.answer(method, path, {"template": template})
    master.answer("POST", "/api/v1/templates", {"template": template})
    master.answer("DELETE", path, {})
    assert "max_restarts: 2" in det("template", "list", "-d").out
    assert "max_restarts: 2" in det("tpl", "describe", "my lab").out
    assert [cell.strip() for cell in det("template", "list").out.splitlines()[-1].split("|")] == [
        "my lab",
        "vision",
    ]
    assert det("template", "create", "my lab", file, "-w", "vision").status == 0
    assert bodies(master, "POST", "/api/v1/templates")[0]["workspaceId"] == 9
    assert det("template", "set", "my lab", file).status == 0
    assert det("template", "set-value", "config", "my lab", file).status == 0
    assert det("template", "remove", "my lab").status == 0
    assert bodies(master, "PATCH", path) == [{"max_restarts": 2}]
    file.write_text("[1]\n")
    assert "a template is a map of fields" in det("template", "create", "x", file).err

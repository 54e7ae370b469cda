"""Agents, slots, queue, tasks (REST spec, sections 6 to 8)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from det_contracts import queries
from det_contracts.events import checkpoints, scheduler, searcher, worker
from det_contracts.problems import unavailable
from services.catalogue import peers
from tests.gateway import stories as story


@pytest.fixture
def busy(gateway):
    gateway.apply(story.worker_here(), story.created(1), searcher.ExperimentActivated(1, "go"))
    gateway.apply(story.trial_created(1), story.trial_created(2), *story.running(1, slot=1))
    gateway.apply(story.run_requested(2), at=1_700_000_001.0)
    return gateway


def test_slots_show_what_is_on_them(busy):
    (agent,) = busy.get("/api/v1/agents")["agents"]
    assert agent["id"] == "w-1"
    assert agent["resourcePools"] == ["default"]
    assert agent["addresses"] == ["127.0.0.1"]
    assert list(agent["slots"]) == ["/agents/w-1/slots/0", "/agents/w-1/slots/1"]
    free, taken = agent["slots"].values()
    assert free["container"] is None
    assert free["device"] == {"id": 0, "brand": "a processor", "uuid": "u-0", "type": "TYPE_CPU"}
    assert taken["container"]["state"] == "STATE_RUNNING"
    assert list(agent["containers"]) == [taken["container"]["id"]]
    (task,) = [task for task in busy.get("/tasks").values() if task["resources"]]
    assert task["resources"][0]["container_id"] == taken["container"]["id"]
    assert task["name"] == "Trial 1 (Experiment 1)"


def test_one_agent_and_one_slot_can_be_asked_for(busy):
    assert busy.get("/api/v1/agents/w-1")["agent"]["version"] == "0.1.0"
    assert [slot["id"] for slot in busy.get("/api/v1/agents/w-1/slots")["slots"]] == ["0", "1"]
    assert busy.get("/api/v1/agents/w-1/slots/0")["slot"]["enabled"] is True
    assert busy.refused(404, "GET", "/api/v1/agents/w-9") == "agent 'w-9' not found"
    assert "slot" in busy.refused(404, "GET", "/api/v1/agents/w-1/slots/7")


def test_an_agent_tells_what_each_run_on_it_may_use(gateway):
    limits = (
        worker.Limit("memory", True, "64 MiB for each slot of the run"),
        worker.Limit("disk", False, "not set"),
    )
    gateway.apply(replace(story.worker_here(), limits=limits, launcher="podman"), story.worker_here("older"))
    newer, older = sorted(gateway.get("/api/v1/agents")["agents"], key=lambda agent: agent["id"] == "older")
    assert newer["runLimits"] == [
        {"kind": "memory", "holds": True, "text": "64 MiB for each slot of the run"},
        {"kind": "disk", "holds": False, "text": "not set"},
    ]
    assert (newer["launcher"], older["runLimits"]) == ("podman", [])


def test_a_long_queue_is_asked_for_in_parts(busy, monkeypatch):
    monkeypatch.setattr(peers, "JOBS_AT_ONCE", 2)
    for id in range(2, 6):
        busy.apply(story.created(id), story.trial_created(id + 1, id), story.run_requested(id + 1, id))
    offsets, answer = [], busy.peers.values[queries.Jobs]
    busy.peers.values[queries.Jobs] = lambda query: (offsets.append(query.offset), answer(query))[1]
    assert [job["jobId"] for job in busy.get("/api/v1/job-queues")["jobs"]] == [
        f"experiment-{id}" for id in range(1, 6)
    ]
    assert offsets == [0, 2, 4]
    # The pages' counts do not need the queue, which every open page would otherwise have put together.
    busy.get("/api/v1/resource-pools")
    assert offsets == [0, 2, 4]


def test_a_scheduler_of_an_earlier_release_sends_the_whole_queue_at_once(busy, monkeypatch):
    monkeypatch.setattr(peers, "JOBS_AT_ONCE", 2)
    busy.apply(story.created(2), story.trial_created(3, 2), story.run_requested(3, 2))
    answer = busy.peers.values[queries.Jobs]
    busy.peers.values[queries.Jobs] = lambda query: answer(queries.Jobs(query.pool))
    assert busy.get("/api/v1/job-queues")["pagination"]["total"] == 2


def test_workers_go_when_they_leave_or_are_lost(busy):
    busy.apply(story.worker_here("w-2"), story.worker_here("w-3"), at=1_600_000_000.0)
    assert [agent["id"] for agent in busy.get("/api/v1/agents", sortBy="SORT_BY_TIME")["agents"]] == [
        "w-2",
        "w-3",
        "w-1",
    ]
    assert busy.get("/info")["workers"] == 3
    busy.apply(worker.WorkerLeft("w-2", "s-1"), scheduler.WorkerLost("w-3", "silent for 25 s"))
    assert [agent["id"] for agent in busy.get("/api/v1/agents")["agents"]] == ["w-1"]


def test_the_pool_counts_slots_and_jobs(busy):
    (pool,) = busy.get("/api/v1/resource-pools")["resourcePools"]
    assert (pool["numAgents"], pool["slotsAvailable"], pool["slotsUsed"]) == (1, 2, 1)
    assert pool["slotType"] == "TYPE_CPU"
    assert (pool["slotsPerAgent"], pool["agentDockerImage"], pool["maxIdleAgentPeriod"]) == (2, "", 0)
    assert pool["stats"] == {"queuedCount": 0, "scheduledCount": 1}


def test_the_queue_is_in_order_of_priority_then_submission(busy):
    settings = scheduler.PoolSettings(scheduler="priority")
    busy.apply(scheduler.PoolConfigured(pool="default", settings=settings, reason="configured"))
    urgent = story.created(3, resources={"priority": 1})
    busy.apply(story.created(2), urgent, story.trial_created(3, 2), story.trial_created(4, 3))
    busy.apply(story.run_requested(3, 2), story.run_requested(4, 3, slots=4))
    jobs = busy.get("/api/v1/job-queues")["jobs"]
    assert [(job["jobId"], job["summary"]["jobsAhead"]) for job in jobs] == [
        ("experiment-3", 0),
        ("experiment-1", 1),
        ("experiment-2", 2),
    ]
    assert (jobs[0]["requestedSlots"], jobs[0]["allocatedSlots"]) == (4, 0)
    assert (jobs[1]["requestedSlots"], jobs[1]["allocatedSlots"]) == (2, 1)
    assert jobs[0]["summary"]["state"] == "STATE_QUEUED"
    wrapped = busy.get("/api/v1/job-queues-v2", resourcePool="default", limit=1)
    assert wrapped["jobs"] == [{"full": jobs[0]}]
    assert wrapped["pagination"]["total"] == 3
    assert busy.get("/api/v1/job-queues", states="STATE_SCHEDULED")["pagination"]["total"] == 1
    assert "not found" in busy.refused(404, "GET", "/api/v1/job-queues?resourcePool=other")
    (stats,) = busy.get("/api/v1/job-queues/stats")["results"]
    assert stats["stats"] == {"queuedCount": 2, "scheduledCount": 1}
    message = busy.refused(404, "GET", "/api/v1/job-queues/stats?resourcePools=default&resourcePools=other")
    assert message == "resource pool 'other' not found"


def test_tasks_are_what_waits_or_runs(busy):
    allocations = busy.get("/api/v1/tasks")["allocationIdToSummary"]
    assert list(allocations) == ["1.r1.1", "1.r2.1"]
    assert allocations["1.r1.1"]["slotsNeeded"] == 1
    assert allocations["1.r2.1"]["resources"] == []
    assert list(busy.get("/tasks")) == ["1.r1.1", "1.r2.1"]
    busy.apply(story.allocation_ended(1))
    assert list(busy.get("/tasks")) == ["1.r2.1"]
    assert busy.get("/api/v1/tasks/count")["notebooks"] == 0


def test_a_task_tells_what_its_pool_goes_by(busy):
    def pool_scheduler():
        new, old = busy.get("/api/v1/tasks")["allocationIdToSummary"]["1.r1.1"], busy.get("/tasks")["1.r1.1"]
        assert (new["schedulerType"], new["priority"]) == (old["scheduler_type"], old["priority"])
        return new["schedulerType"], new["priority"]

    assert pool_scheduler()[0] == "fair_share"
    settings = scheduler.PoolSettings(scheduler="priority")
    busy.apply(scheduler.PoolConfigured(pool="default", settings=settings, reason="configured"))
    assert pool_scheduler() == ("priority", 42)
    moved = {"pool": "default", "weight": 1.0, "max_slots": None, "position": "1", "reason": "asked"}
    busy.apply(scheduler.JobChanged(experiment_id=1, priority=17, **moved))
    assert pool_scheduler() == ("priority", 17)
    busy.peers.values[queries.Pools] = unavailable("the scheduler is away")
    assert pool_scheduler()[0] == ""


def test_a_task_keeps_the_memory_of_its_runs(busy):
    busy.apply(story.allocation_ended(1), story.run_requested(1, run=2))
    task = busy.get("/api/v1/tasks/1.r1")["task"]
    assert task["taskType"] == "TASK_TYPE_TRIAL"
    assert [(run["allocationId"], run["state"], run["isReady"]) for run in task["allocations"]] == [
        ("1.r1.1", "STATE_TERMINATED", False),
        ("1.r1.2", "STATE_QUEUED", False),
    ]
    first, second = task["allocations"]
    assert first["agentIds"]
    assert first["reason"] == busy.catalogue.state.allocations["1.r1.1"].reason != ""
    assert (second["agentIds"], second["reason"]) == ([], "")
    assert busy.refused(404, "GET", "/api/v1/tasks/1.r9") == "task '1.r9' not found"


def test_a_deletion_task_is_a_task_too(busy):
    gone = scheduler.AllocationAssigned(
        allocation_id="1.gc-1.1",
        task_id="1.gc-1",
        kind="CHECKPOINT_GC",
        parts=(scheduler.Part("w-1", (), 0),),
        experiment_id=1,
        run=1,
        reason="w-1 is here",
    )
    requested = checkpoints.DeletionRequested(task_id="1.gc-1", experiment_id=1, uuids=(), reason="retention")
    # From the request on: clients wait for it to come and go.
    assert busy.apply(requested).get("/tasks")["1.gc-1.1"]["name"] == "Checkpoint GC (Experiment 1)"
    busy.apply(gone, worker.AllocationStarted("w-1", "1.gc-1.1"))
    assert busy.get("/tasks")["1.gc-1.1"]["name"] == "Checkpoint GC (Experiment 1)"
    assert busy.get("/api/v1/tasks/1.gc-1")["task"]["taskType"] == "TASK_TYPE_CHECKPOINT_GC"
    (pool,) = busy.get("/api/v1/resource-pools")["resourcePools"]
    assert (pool["auxContainersRunning"], pool["slotsUsed"]) == (1, 1)
    ended = scheduler.AllocationEnded(
        allocation_id="1.gc-1.1", kind="CHECKPOINT_GC", run=1, outcome="succeeded", reason="done"
    )
    assert "1.gc-1.1" not in busy.apply(ended).get("/tasks")


def test_there_is_one_workspace_with_one_project(busy):
    (workspace,) = busy.get("/api/v1/workspaces")["workspaces"]
    assert (workspace["id"], workspace["name"], workspace["numExperiments"]) == (1, "Uncategorized", 1)
    assert busy.get("/api/v1/workspaces/1")["workspace"] == workspace
    (project,) = busy.get("/api/v1/workspaces/1/projects")["projects"]
    assert busy.get("/api/v1/projects/1")["project"] == project
    assert project["numActiveExperiments"] == 1
    busy.refused(404, "GET", "/api/v1/workspaces/2")
    busy.refused(404, "GET", "/api/v1/workspaces/2/projects")
    busy.refused(404, "GET", "/api/v1/projects/2")


def test_the_master_says_who_it_is(gateway):
    master = gateway.get("/api/v1/master")
    assert (master["version"], master["clusterId"], master["clusterName"]) == ("0.25.0", "c-1", "test")
    assert (master["rbacEnabled"], master["userManagementEnabled"]) == (False, True)
    raw = gateway.get("/info")
    assert (raw["version"], raw["cluster_id"], raw["master_id"]) == ("0.25.0", "c-1", "c-1")
    assert gateway.get("/api/v1/master/telemetry") == {"enabled": False}
    assert gateway.get("/health")["status"] == "up"


@pytest.mark.parametrize("noun", ["commands", "notebooks", "shells", "tensorboards", "templates"])
def test_lists_of_what_is_not_there_yet_are_empty(gateway, noun):
    assert gateway.get(f"/api/v1/{noun}")[noun] == []


@pytest.mark.parametrize("gone", [scheduler.WorkerLost("w-1", "silent"), worker.WorkerLeft("w-1", "s-1")])
def test_a_repeated_registration_does_not_bring_a_worker_back(gateway, gone):
    """The scheduler skips it, and an agent that nothing is placed on would be shown as connected."""
    gateway.apply(story.worker_here(), gone, story.worker_here())
    assert gateway.get("/api/v1/agents")["agents"] == []


def test_a_repeat_of_a_refused_registration_does_not_bring_a_worker(gateway):
    first, refused = (replace(story.worker_here(), instance=name, session=f"s-{name}") for name in "ab")
    gateway.apply(first, refused, scheduler.WorkerLost("w-1", "silent"), refused)
    assert gateway.get("/api/v1/agents")["agents"] == []


@pytest.mark.parametrize(
    "gone",
    [worker.WorkerLeft, lambda worker_id, session: scheduler.WorkerLost(worker_id, "silent", session)],
    ids=["left", "lost"],
)
def test_the_end_of_a_session_counts_for_no_other_one(gateway, gone):
    """It may be stored twice, or late, or another worker that wanted the id may say it."""

    def agents(*events):
        return [agent["id"] for agent in gateway.apply(*events).get("/api/v1/agents")["agents"]]

    first, again = story.worker_here(), replace(story.worker_here(), session="s-2")
    assert agents(first, again, gone("w-1", "s-1")) == ["w-1"]
    assert agents(gone("w-1", "s-2")) == []
    assert agents(replace(first, session="s-3"), gone("w-1", "s-2")) == ["w-1"]

"""Changes of the queue, and of what workers and slots take (REST spec, section 7)."""

from __future__ import annotations

import pytest

from det_contracts.commands import ChangeJob, SwitchSlot, SwitchWorker
from det_contracts.events import scheduler, worker
from det_contracts.problems import invalid, not_found
from tests.gateway import stories as story

SMALL = "entrypoint: x\nsearcher: {name: single, metric: loss, max_length: 1}\n"


@pytest.fixture
def busy(gateway):
    return gateway.apply(story.worker_here(), story.created(1), story.created(2))


def update(gateway, *updates):
    return gateway.send("POST", "/api/v1/job-queues", {"updates": list(updates)})


def test_updates_are_passed_on_in_order(busy):
    answer = update(
        busy,
        {"jobId": "experiment-1", "priority": 3},
        {"jobId": "experiment-2", "aheadOf": "experiment-1"},
        {"jobId": "experiment-1", "resourcePool": "b"},
        {"jobId": "experiment-1", "weight": 2.5},
    )
    assert answer.json() == {}
    assert busy.peers.commands == [
        ChangeJob(experiment_id=1, user="determined", priority=3),
        ChangeJob(experiment_id=2, user="determined", ahead_of=1),
        ChangeJob(experiment_id=1, user="determined", resource_pool="b"),
        ChangeJob(experiment_id=1, user="determined", weight=2.5),
    ]


def test_refusals_are_reported_together_and_other_changes_apply(busy):
    def refuse(command):
        if command.priority == 100:
            raise invalid("priority must be between 1 and 99")
        if command.experiment_id == 9:
            raise not_found("job of experiment", 9)

    busy.peers.on_command = refuse
    answer = update(
        busy,
        {"jobId": "experiment-1", "priority": 100},
        {"jobId": "experiment-2", "priority": 5},
        {"jobId": "experiment-9", "priority": 5},
    )
    assert answer.status_code == 400
    message = answer.json()["error"]["error"]
    assert message == "priority must be between 1 and 99; job of experiment '9' not found"
    assert len(busy.peers.commands) == 3


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"jobId": "experiment-1"}, 400, "nothing is asked for job 'experiment-1'"),
        ({"jobId": "notebook-1", "priority": 1}, 404, "job 'notebook-1' not found"),
        ({"jobId": "experiment-1", "aheadOf": "x"}, 404, "job 'x' not found"),
        ({"priority": 1}, 400, "jobId"),
    ],
)
def test_what_makes_no_sense_is_refused(busy, change, status, message):
    answer = update(busy, change)
    assert answer.status_code == status
    assert message in answer.json()["error"]["error"]
    assert busy.peers.commands == []


def test_workers_and_slots_are_switched(busy):
    busy.let_in("admin")
    agent, slot = "/api/v1/agents/w-1", "/api/v1/agents/w-1/slots/1"
    busy.send("POST", f"{agent}/disable", {"drain": True})
    busy.send("POST", f"{agent}/disable")
    busy.send("POST", f"{agent}/enable")
    busy.send("POST", f"{slot}/disable", {"drain": False})
    busy.send("POST", f"{slot}/enable", {})
    who = {"worker_id": "w-1", "user": "admin"}
    assert busy.peers.commands == [
        SwitchWorker(enabled=False, drain=True, **who),
        SwitchWorker(enabled=False, **who),
        SwitchWorker(enabled=True, **who),
        SwitchSlot(slot_id=1, enabled=False, **who),
        SwitchSlot(slot_id=1, enabled=True, **who),
    ]


def test_switches_show_and_outlive_an_absence(busy):
    off = scheduler.SlotSwitched(worker_id="w-1", slot_id=1, enabled=False, reason="asked")
    busy.apply(scheduler.WorkerSwitched(worker_id="w-1", enabled=False, draining=True, reason="asked"), off)
    busy.apply(scheduler.WorkerLost("w-1", "silent"), story.worker_here(session="s-2"))
    (agent,) = busy.get("/api/v1/agents")["agents"]
    assert (agent["enabled"], agent["draining"]) == (False, True)
    assert [slot["enabled"] for slot in agent["slots"].values()] == [False, False]
    assert [slot["draining"] for slot in agent["slots"].values()] == [True, True]
    on = scheduler.WorkerSwitched(worker_id="w-1", enabled=True, draining=False, reason="asked")
    busy.apply(on)
    (agent,) = busy.get("/api/v1/agents")["agents"]
    assert [slot["enabled"] for slot in agent["slots"].values()] == [True, False]
    assert [slot["draining"] for slot in agent["slots"].values()] == [False, False]


def test_pools_tell_how_they_schedule(busy):
    settings = scheduler.PoolSettings(scheduler="priority", preemption=True, fitting_policy="worst")
    busy.apply(scheduler.PoolConfigured(pool="gpus", description="fast", settings=settings, reason="asked"))
    pools = {pool["name"]: pool for pool in busy.get("/api/v1/resource-pools")["resourcePools"]}
    assert set(pools) == {"default", "gpus"}
    assert pools["gpus"]["schedulerType"] == "SCHEDULER_TYPE_PRIORITY"
    assert pools["gpus"]["schedulerFittingPolicy"] == "FITTING_POLICY_WORST"
    assert pools["gpus"]["details"]["priorityScheduler"] == {"preemption": True, "defaultPriority": 42}
    assert pools["default"]["defaultComputePool"] is True


def test_a_trial_that_can_never_fit_is_reported_at_submission(busy):
    text = f"{SMALL}resources: {{slots_per_trial: 5}}"
    body = {"config": text, "validateOnly": True}
    answer = busy.send("POST", "/api/v1/experiments", body).json()
    assert answer["warnings"] == ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]
    (notice,) = answer["notices"]
    assert "5" in notice


IMAGE = "environment: {image: mine/train:1}"


@pytest.mark.parametrize(
    ("launchers", "config", "expected"),
    [
        (["process"], "", ""),
        (["process"], IMAGE, "mine/train:1 is not used: the workers of pool 'default'"),
        (["docker", "process"], IMAGE, "is not used: some workers (one-1) of pool 'default'"),
        (["docker", "podman"], IMAGE, ""),
        ([], IMAGE, ""),
    ],
)
def test_an_image_that_no_worker_would_use_is_reported_at_submission(busy, launchers, config, expected):
    for connected in list(busy.catalogue.state.workers.values()):
        busy.apply(worker.WorkerLeft(worker_id=connected.id, session=connected.session))
    for number, launcher in enumerate(launchers):
        busy.apply(
            worker.WorkerRegistered(
                worker_id=f"one-{number}",
                session=f"s{number}",
                pool="default",
                address="10.0.0.1",
                version="1",
                slots=(worker.Slot(0, "cpu", "cpu-0", "CPU"),),
                reads_after=0,
                running=(),
                launcher=launcher,
            )
        )
    answer = busy.send("POST", "/api/v1/experiments", {"config": SMALL + config, "validateOnly": True}).json()
    notices = [notice for notice in answer["notices"] if "image" in notice]
    assert len(notices) == bool(expected)
    assert all(expected in notice for notice in notices)


def test_an_unknown_pool_is_refused_with_the_known_ones(busy):
    text = f"{SMALL}resources: {{resource_pool: nope}}"
    answer = busy.send("POST", "/api/v1/experiments", {"config": text})
    assert answer.status_code == 400
    message = answer.json()["error"]["error"]
    assert "resource pool nope does not exist" in message
    assert "there are: default" in message

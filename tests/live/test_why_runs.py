"""`det why` on a real cluster: who took a slot, who closed an agent, and what became of a checkpoint."""

import contextlib
import json

import pytest

from tests.fixtures.local_cluster import LocalCluster, wait_for

pytestmark = pytest.mark.timeout(900)

POOLS = """
resource_pools:
  - pool_name: default
    scheduler: {type: priority, preemption: true}
"""
CONFIG = """
name: why
entrypoint: python3 train.py
searcher: {{name: random, metric: loss, max_length: 3, max_trials: {trials}}}
resources: {{priority: {priority}}}
checkpoint_storage: {{save_experiment_best: 0, save_trial_best: 0, save_trial_latest: 1}}
max_restarts: 0
"""
SCRIPT = """
import time
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
        for step in (1, 2):
            with core.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                (path / "state").write_text("x")
        while WAITS and not core.preempt.should_preempt():
            time.sleep(0.02)
        if WAITS:
            break
        core.train.report_validation_metrics(steps_completed=2, metrics={"loss": 0.5})
        op.report_completed(0.5)
"""


@pytest.fixture(scope="module")
def by_priority(tmp_path_factory):
    """One worker of two slots, where priority decides."""
    folder = tmp_path_factory.mktemp("by-priority")
    (folder / "pools.yaml").write_text(POOLS)
    cluster = LocalCluster(folder, pools_file=str(folder / "pools.yaml"))
    yield cluster.up()
    cluster.down()


@pytest.fixture
def cluster(by_priority):
    yield by_priority
    by_priority.end_all()


@pytest.fixture
def submit(cluster, tmp_path):
    """Submits trials of one slot, which wait to be asked to leave; returns experiment and trial ids."""

    def create(trials, priority, waits=True):
        (tmp_path / "train.py").write_text(SCRIPT.replace("WAITS", str(waits)))
        (tmp_path / "config.yaml").write_text(CONFIG.format(trials=trials, priority=priority))
        id = cluster.create("config.yaml", tmp_path)
        wait_for(lambda: len(cluster.trials(id)) == trials, 60, f"the trials of experiment {id}")
        return id, [trial["id"] for trial in cluster.trials(id)]

    return create


def why(cluster, kind, id, *words):
    """The answer, with its sentences."""
    answer = json.loads(cluster.det("why", kind, id, *words, "--json").stdout)
    return answer, [step["what"] for step in answer["steps"]]


def wait_until(cluster, kind, id, sentence):
    """Wait until the newest step of a chain is `sentence`, up to what follows it."""

    def newest():
        with contextlib.suppress(AssertionError):
            # It may not be there yet.
            return cluster.get(f"why/{kind}/{id}")["steps"][0]["what"]

    wait_for(lambda: (newest() or "").startswith(sentence), 60, f"{kind} {id}: {sentence}")


def until_it_waits(cluster, kind, id):
    """Wait until it is said what something waits for: the scheduler may be asked in vain."""
    wait_for(lambda: cluster.get(f"why/{kind}/{id}")["waitsFor"], 60, f"{kind} {id} to wait")


@pytest.mark.full
def test_a_killed_trial_and_who_got_its_slot(cluster, submit):
    _, (first, second, third) = submit(3, 50)
    wait_until(cluster, "trial", first, f"run 1 of trial {first} started")
    wait_until(cluster, "trial", second, f"run 1 of trial {second} started")
    until_it_waits(cluster, "trial", third)
    assert why(cluster, "trial", third)[0]["state"] == "QUEUED"
    cluster.det("trial", "kill", first)
    wait_until(cluster, "trial", first, f"trial {first} was canceled")
    answer, sentences = why(cluster, "trial", first)
    assert sentences[-1] == f"trial {first} was to be canceled"
    assert (answer["steps"][-1]["actor"], answer["state"]) == ("user:determined", "CANCELED")
    allocation = answer["steps"][1]["about"]["id"]
    assert why(cluster, "allocation", allocation)[1] == sentences[1:]
    wait_until(cluster, "trial", third, f"run 1 of trial {third} started")
    occasions = [step["what"] for step in why(cluster, "trial", third)[0]["steps"] if step["aside"]]
    assert occasions == [f"run 1 of trial {first} was ended"]


@pytest.mark.full
def test_a_preempted_trial_and_an_agent_that_was_disabled(cluster, submit):
    low, (first, _) = submit(2, 50)
    saved = lambda: len(cluster.get(f"experiments/{low}/checkpoints")["checkpoints"]) == 4  # noqa: E731
    wait_for(saved, 60, "both trials to wait")
    high, important = submit(2, 10)
    for id in important:
        wait_until(cluster, "trial", id, f"run 1 of trial {id} started")
    for kind, id in (("trial", first), ("job", low)):
        until_it_waits(cluster, kind, id)
        answer, sentences = why(cluster, kind, id)
        assert answer["state"] == "QUEUED"
        assert any(
            sentence.startswith(f"run 1 of trial {first} was asked to save and leave its slots to")
            for sentence in sentences
        )
        assert f"experiment {high} was created" in sentences
    (agent,) = cluster.workers()
    cluster.api("POST", f"agents/{agent}/disable", user="admin")
    killed = important[0]
    wait_until(cluster, "trial", killed, f"trial {killed} asked for 1 slot for its run 2")
    answer, sentences = why(cluster, "trial", killed)
    assert sentences[-2:] == [f"run 1 of trial {killed} was to be killed", f"agent {agent} was disabled"]
    assert answer["steps"][-1]["actor"] == "user:admin"
    cluster.api("POST", f"agents/{agent}/enable", user="admin")


@pytest.mark.full
def test_a_checkpoint_that_the_retention_deleted(cluster, submit):
    id, _ = submit(1, 42, waits=False)
    cluster.wait_for_end(id)
    gone = []

    def deleted():
        checkpoints = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
        gone[:] = [checkpoint["uuid"] for checkpoint in checkpoints if checkpoint["state"] == "STATE_DELETED"]
        return gone

    wait_for(deleted, 60, "a checkpoint to be deleted")
    answer, sentences = why(cluster, "checkpoint", gone[0])
    assert answer["state"] == "DELETED"
    assert sentences[0].endswith(f"deleted checkpoint {gone[0]}")
    assert f"experiment {id} completed" in sentences
    assert "kept" in answer["steps"][0]["reason"]
    assert why(cluster, "checkpoint", gone[0], "--all")[1][-1] == sentences[0]

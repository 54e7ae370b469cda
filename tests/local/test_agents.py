"""Workers that are added to a running local cluster, and the logs of its programs."""

import subprocess
import sys
from dataclasses import replace

import pytest

from services.local import agents, logs
from services.local.answers import count_workers
from services.local.control import CannotStart
from services.local.home import Home, Plan
from services.local.supervisor import Cluster
from tests.fixtures.local_cluster import LocalCluster, wait_for


def test_an_added_worker_has_its_own_id_and_settings(tmp_path):
    plan = replace(Plan(name="test", agents=0), pools=["other"], slots=3, gpu=False)
    environment = Cluster(plan, Home("test", tmp_path)).worker("more").environment
    assert environment["STEADFAST_WORKER_ID"] == "more"
    assert (environment["STEADFAST_WORKER_POOL"], environment["STEADFAST_WORKER_SLOTS"]) == ("other", "3")


def test_only_clusters_that_run_here_can_be_joined(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))
    Home("idle").write_plan(Plan(name="idle", port=1234))
    with pytest.raises(CannotStart, match="port 1234"):
        agents.agent_up("localhost", 1234, "x", pool="default", slots=1, gpu=False)
    with pytest.raises(CannotStart, match="of this machine, not of '192"):
        agents.agent_up("192.0.2.1", 1234, "x", pool="default", slots=1, gpu=False)


def test_what_does_not_run_is_not_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    Home("c").write("agent-gone.json", {"pid": ended.pid})
    assert agents.agent_down("unknown") == []
    assert agents.agent_down(None) == []
    assert not (Home("c").path / "agent-gone.json").exists()


def test_logs_are_whole_lines_with_names(tmp_path, capsys):
    (tmp_path / "gateway.log").write_text("one\ntwo\nhal")
    (tmp_path / "broker.log").write_text("up\n")
    logs.show(tmp_path, follow=False)
    assert capsys.readouterr().out.splitlines() == [
        "broker       | up",
        "gateway      | one",
        "gateway      | two",
    ]


@pytest.mark.full
@pytest.mark.live
def test_a_master_and_agents_added_one_by_one(tmp_path, monkeypatch):
    cluster = LocalCluster(tmp_path, agents=0)
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))
    cluster.up()
    try:
        assert cluster.get("agents")["agents"] == []
        for name, slots in (("first", 1), ("second", 3)):
            agents.agent_up("localhost", cluster.plan.port, name, pool="default", slots=slots, gpu=False)
        shown = {agent["id"]: len(agent["slots"]) for agent in cluster.get("agents")["agents"]}
        assert shown == {"first": 1, "second": 3}
        assert agents.agent_down("second") == ["second"]
        wait_for(lambda: len(cluster.get("agents")["agents"]) == 1, 60, "the agent to be gone")
    finally:
        cluster.down()
    assert agents.agent_down(None) == []
    for process in agents._started:
        process.wait(60)
    assert count_workers(cluster.address) is None

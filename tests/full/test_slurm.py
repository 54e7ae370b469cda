"""Pools that grow on a real Slurm: two nodes on this host, jobs that are requeued, preempted, run out of time
or never register, and a controller that goes."""

import re
import subprocess
import sys

import pytest

from tests.fixtures import watchdog
from tests.fixtures.local_cluster import DET, LocalCluster, wait_for
from tests.fixtures.slurm import Slurm, why_unavailable

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable()),
]

POOLS = """
resource_pools:
  - {{pool_name: default}}
  - pool_name: batch
    provider: {{type: slurm, max_instances: 2, max_idle_agent_period: 5s, slurm: {{{usual}}}}}
  - pool_name: nowhere
    provider: {{type: slurm, max_instances: 2, slurm: {{{usual}, partition: nowhere}}}}
  - pool_name: mute
    provider: {{type: slurm, max_agent_starting_period: 3s, slurm: {{{usual}, setup: [exec sleep 600]}}}}
  - pool_name: short
    provider:
      {{type: slurm, max_idle_agent_period: 5s, notice_period: 590s, slurm: {{{usual}, time_limit: "10"}}}}
  - pool_name: strict
    provider:
      {{type: slurm, max_idle_agent_period: 5s, notice_period: 5s, slurm: {{{usual}, time_limit: "1"}}}}
  - pool_name: hasty
    provider: {{type: slurm, notice_period: 61s, slurm: {{{usual}, time_limit: "1"}}}}
"""
SCRIPT = """
import os, sys, time
import determined as det

with det.core.init() as context:
    for operation in context.searcher.operations():
        while not os.path.exists(sys.argv[1]):
            if context.preempt.should_preempt():
                sys.exit(0)
            time.sleep(0.1)
        context.train.report_validation_metrics(steps_completed=operation.length, metrics={"loss": 1.0})
        operation.report_completed(1.0)
"""
DEAF = SCRIPT.replace("should_preempt()", "should_preempt() and False")
CONFIG = """
name: {name}
entrypoint: python3 train.py {gate}
max_restarts: 0
resources: {{resource_pool: {pool}}}
searcher: {{name: random, metric: loss, max_length: {{batches: 4}}, max_trials: {trials}}}
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    daemons = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        yield daemons.up()
    finally:
        daemons.down()


@pytest.fixture(scope="module")
def cluster(slurm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm-cluster")
    usual = f"python: {sys.executable}, home: {folder}/workers, output: {folder}/job-%j.log"
    (folder / "pools.yaml").write_text(POOLS.format(usual=usual))
    settings = {"SLURM_CONF": str(slurm.conf), "STEADFAST_PROVISIONER_LOOK_S": "1"}
    slurm_cluster = LocalCluster(
        folder / "cluster", agents=0, pools_file=str(folder / "pools.yaml"), settings=settings
    )
    try:
        yield slurm_cluster.up()
    finally:
        slurm_cluster.down()


class Search:
    """An experiment whose trials wait until they may go on."""

    def __init__(self, cluster, folder, pool, trials=1, script=SCRIPT):
        self.cluster, self.gate = cluster, folder / "gate"
        (folder / "train.py").write_text(script)
        text = CONFIG.format(name=pool, gate=self.gate, pool=pool, trials=trials)
        (folder / "config.yaml").write_text(text)
        self.id = cluster.create("config.yaml", folder)

    def until_running(self, count=1):
        wait_for(lambda: self.running() == count, 120, f"{count} trials to run")

    def running(self):
        trials = self.cluster.trials(self.id)
        return sum(
            trial["state"] in ("STATE_RUNNING", "STATE_ACTIVE") and bool(self.place(trial))
            for trial in trials
        )

    def place(self, trial):
        runs = self.cluster.get("tasks")["allocationIdToSummary"].values()
        mine = [run for run in runs if run["taskId"] == trial["taskId"]]
        return {
            resource["agentId"] if "agentId" in resource else str(resource)
            for run in mine
            for resource in run["resources"]
        }

    def finish(self):
        self.gate.write_text("")
        assert self.cluster.wait_for_end(self.id, 240)["state"] == "STATE_COMPLETED"
        return [trial["restarts"] for trial in self.cluster.trials(self.id)]


def agents(cluster):
    return {agent["id"] for agent in cluster.get("agents")["agents"]}


def why(cluster, kind, id):
    return " ".join(cluster.det("why", kind, id).stdout.split())


def nothing_left(cluster, slurm):
    wait_for(lambda: agents(cluster) == set(), 120, "all workers to be given back")
    wait_for(lambda: slurm.jobs("PENDING", "RUNNING") == {}, 60, "no job to be left")


def test_a_pool_grows_from_nothing_to_two_nodes_and_back(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "batch", trials=2)
    wait_for(lambda: agents(cluster) == {"batch-1", "batch-2"}, 120, "two workers")
    nodes = slurm.run("squeue", "-h", "--states=RUNNING", "--format=%N").split()
    assert sorted(nodes) == ["n1", "n2"]
    cluster.kill("provisioner")
    assert search.finish() == [0, 0]
    nothing_left(cluster, slurm)
    answer = why(cluster, "pool", "batch")
    assert "pool batch asked for worker batch-1:" in answer
    assert "batch-3" not in answer
    explanation = why(cluster, "worker", "batch-1")
    assert "it had no work for 5 s (max_idle_agent_period)" in explanation
    assert "the engine of pool batch had worker batch-1 running (job" in explanation


def test_a_requeued_job_loses_nothing_but_its_run(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "batch")
    search.until_running()
    ((name, number),) = slurm.jobs("RUNNING").items()
    slurm.run("scontrol", "requeue", number)
    wait_for(lambda: name in slurm.jobs("PENDING"), 60, "the job to wait again")
    wait_for(lambda: agents(cluster) == set(), 60, "its worker to have left")
    slurm.run("scontrol", "update", f"JobId={number}", "StartTime=now")
    search.until_running()
    assert slurm.jobs("RUNNING").get(name) == number
    assert search.finish() == [0]
    nothing_left(cluster, slurm)


def test_a_preempted_worker_comes_back_when_there_is_room(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "batch", trials=2)
    search.until_running(2)
    workers = slurm.jobs("RUNNING").keys()
    urgent = "#!/bin/bash\nsleep 600\n"
    number = slurm.run(
        "sbatch", "--parsable", "--partition=urgent", "--output=/dev/null", text=urgent
    ).strip()
    wait_for(lambda: len(agents(cluster)) == 1, 120, "a worker to make room")
    search.until_running(1)
    wait_for(lambda: workers & slurm.jobs("PENDING").keys(), 60, "the job of that worker to wait again")
    slurm.run("scancel", number)
    for waiting in slurm.jobs("PENDING").values():
        slurm.run("scontrol", "update", f"JobId={waiting}", "StartTime=now")
    search.until_running(2)
    assert search.finish() == [0, 0]
    nothing_left(cluster, slurm)


def test_while_the_controller_is_away_everything_works_on(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "batch")
    search.until_running()
    here = agents(cluster)
    slurm.controller_down()
    try:
        wait_for(lambda: "does not answer: squeue" in why(cluster, "pool", "batch"), 120, "word of it")
        assert search.finish() == [0]
        assert agents(cluster) == here
    finally:
        slurm.controller_up()
    nothing_left(cluster, slurm)
    assert "the engine of pool batch answered again" in why(cluster, "pool", "batch")


def test_a_job_that_never_registers_is_given_up_and_the_pool_waits(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "mute")
    wait_for(
        lambda: "worker failed" in whole(cluster, "mute") or "1 failed" in whole(cluster, "mute"), 120, "word"
    )
    answer = why(cluster, "worker", "mute-1")
    assert "it did not register in time (max_agent_starting_period)" in answer
    wait_for(
        lambda: not any(".mute-1" in name for name in slurm.jobs("PENDING", "RUNNING")), 60, "its job to go"
    )
    cluster.tell(search.id, "kill")
    cluster.wait_for_end(search.id)
    cluster.end_all()


def whole(cluster, pool):
    return why(cluster, "pool", pool)


def test_a_refusal_by_slurm_is_quoted(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "nowhere")
    wait_for(lambda: "invalid partition" in whole(cluster, "nowhere").lower(), 120, "what sbatch says")
    assert "The pool waits before it asks for another worker" in whole(cluster, "nowhere")
    cluster.tell(search.id, "kill")
    cluster.wait_for_end(search.id)


def test_before_a_jobs_time_is_over_its_tasks_save_and_go_elsewhere(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "short")
    wait_for(lambda: "its engine takes its host away soon" in whole(cluster, "short"), 180, "the notice")
    assert search.finish() == [0]
    cluster.end_all()


def test_a_run_that_slurm_ends_for_time_goes_on_elsewhere_and_says_why(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "strict", script=DEAF)
    search.until_running()
    wait_for(
        lambda: "strict-2" in whole(cluster, "strict"), 240, "Slurm to end the job and the pool to ask again"
    )
    (trial,) = cluster.trials(search.id)
    causes = why(cluster, "trial", trial["id"])
    assert (
        "worker strict-1 was lost; strict-1 is given back: its engine takes its host away soon: job" in causes
    )
    assert "this does not count as a restart" in causes
    assert search.finish() == [0]
    assert "TIMEOUT" in why(cluster, "worker", "strict-1")
    cluster.end_all()
    nothing_left(cluster, slurm)


def test_a_time_limit_within_the_notice_is_told_to_who_waits(cluster, slurm, tmp_path):
    search = Search(cluster, tmp_path, "hasty")
    reason = "less time than notice_period, 61 s, so that no task could use it"
    wait_for(lambda: reason in cluster.det("job", "list").stdout, 120, "the reason")
    cluster.tell(search.id, "kill")
    cluster.wait_for_end(search.id)
    cluster.end_all()
    nothing_left(cluster, slurm)


class Deployed(LocalCluster):
    """A cluster of `det deploy slurm`."""

    def __init__(self, slurm, folder):
        self.slurm = slurm
        super().__init__(folder)
        usual = f"python: {sys.executable}, home: {folder}/workers, output: {folder}/job-%j.log"
        (folder / "pools.yaml").write_text(GUIDE_POOLS.format(usual=usual))
        self.settings = slurm.environment | watchdog.settings() | {"STEADFAST_HOME": str(folder)}

    def run(self, line):
        """One line of the guide, in a shell."""
        environment = self.settings | {"PATH": f"{DET.parent}:{self.settings['PATH']}"}
        folder = self.settings["STEADFAST_HOME"]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


GUIDE_POOLS = """
resource_pools:
  - pool_name: gpu
    provider: {{type: slurm, max_instances: 2, max_idle_agent_period: 5m, slurm: {{{usual}}}}}
"""


def test_the_commands_of_the_guide_run_a_cluster(slurm, tmp_path):
    deployed = Deployed(slurm, tmp_path)
    name = "--cluster-name test"
    deployed.run(f"det deploy slurm up pools.yaml --host 127.0.0.1 {name} --master-port {deployed.plan.port}")
    try:
        (tmp_path / "model").mkdir()
        search = Search(deployed, tmp_path / "model", "gpu")
        search.until_running()
        assert re.search(
            r"job \d+: worker gpu-1, running n[12]", deployed.run(f"det deploy slurm status {name}")
        )
        deployed.run(f"det deploy slurm render pools.yaml gpu {name} | sbatch")
        wait_for(lambda: "gpu-by-hand" in agents(deployed), 120, "the worker submitted by hand")
        assert search.finish() == [0]
    finally:
        printed = deployed.run(f"det deploy slurm down {name}")
        deployed._session.close()
        deployed._door.close()
    assert "2 jobs cancelled" in printed
    wait_for(lambda: slurm.jobs("PENDING", "RUNNING") == {}, 60, "no job to be left")

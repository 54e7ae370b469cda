"""Kill anything, at any time: the search ends as if nothing had happened."""

import os
import random
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

from det_contracts.events import scheduler, searcher
from services.local.processes import is_alive
from services.local.supervisor import Cluster
from tests.fixtures.counting_search import operations, outcome, write_counting_search
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.reading import answers, read_control

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def model(tmp_path):
    return write_counting_search(tmp_path / "model")


def test_killing_each_part_in_turn_changes_nothing(local_cluster, model):
    calm = local_cluster()
    id = calm.create("config.yaml", model)
    assert calm.wait_for_end(id)["state"] == "STATE_COMPLETED"
    expected, expected_operations = outcome(calm, id), operations(calm, id)
    calm.down()

    rough = local_cluster()
    id = rough.create("config.yaml", model)
    stop = threading.Event()
    killed = Counter()

    def kill_in_turn():
        chance = random.Random(5)
        names = rough.names()
        while not stop.is_set():
            chance.shuffle(names)
            for name in names:
                stop.wait(chance.uniform(0.1, 0.6))
                if stop.is_set():
                    return
                rough.kill(name)
                killed[name] += 1

    killer = threading.Thread(target=kill_in_turn)
    killer.start()
    try:
        wait_for(lambda: len(killed) == len(rough.names()), 120, "every part to have been killed")
    finally:
        stop.set()
        killer.join()
    assert rough.wait_for_end(id, 120)["state"] == "STATE_COMPLETED"
    assert set(killed) == set(rough.names())
    assert operations(rough, id) == expected_operations
    assert outcome(rough, id) == expected
    assert one_run_each(read_control(rough))


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="here every service is started for itself")
def test_killing_what_all_services_are_forked_from_changes_nothing(local_cluster, model):
    cluster = local_cluster()
    id = cluster.create("config.yaml", model)
    killed = set()
    for done in (2, 6):
        wait_for(lambda done=done: len(cluster.trials(id)) > done, 60, f"{done + 1} trials")
        server = parent(cluster.pid("gateway"))
        before = {name: pid for name in cluster.names() if parent(pid := cluster.pid(name)) == server}
        assert {"scheduler", "searcher", "gateway", "metrics"} <= set(before)
        os.kill(server, signal.SIGKILL)
        killed.add(server)
        wait_for(
            lambda before=before: all(
                cluster.pid(name) != old and is_alive(cluster.pid(name)) for name, old in before.items()
            ),
            60,
            "all that went with it to be started again",
        )
    assert cluster.wait_for_end(id, 120)["state"] == "STATE_COMPLETED"
    # It was begun anew, and forks go on from it.
    assert parent(cluster.pid("gateway")) not in killed | {cluster.pid("supervisor")}
    events = read_control(cluster)
    assert one_run_each(events)
    assert no_double_decision(events)


def one_run_each(events):
    """No trial needed a second run: killing the worker did not kill what it ran."""
    runs = Counter(e.trial_id for e in events if isinstance(e, searcher.RunRequested))
    return set(runs.values()) == {1}


def no_double_decision(events):
    """Nothing was decided twice, by whomever."""
    decided = Counter()
    for e in events:
        match e:
            case searcher.ExperimentCreated():
                decided["experiment", e.experiment_id] += 1
            case searcher.ExperimentEnded():
                decided["ended", e.experiment_id] += 1
            case searcher.TrialCreated():
                decided["trial", e.trial_id] += 1
                decided["request", e.request_id] += 1
            case searcher.OperationSet():
                decided["operation", e.trial_id, e.seq] += 1
            case searcher.RunRequested():
                decided["run", e.trial_id, e.run] += 1
            case searcher.TrialEnded():
                decided["trial ended", e.trial_id] += 1
            case scheduler.AllocationAssigned() | scheduler.AllocationEnded():
                decided[type(e), e.allocation_id] += 1
    return {what: count for what, count in decided.items() if count > 1} == {}


def test_a_deleted_database_is_rebuilt_with_the_same_answers(local_cluster, model):
    cluster = local_cluster()
    trigger = {"condition": {"state": "COMPLETED"}}
    # Nobody may be asked there, so what became of it stays as it is.
    cluster.api("POST", "webhooks", user="admin", json={"url": "http://192.0.2.1/", "triggers": [trigger]})
    id = cluster.create("config.yaml", model, "--config", "searcher.max_trials=3")
    cluster.wait_for_end(id)
    wait_for(lambda: settled(cluster), 60, "all reports to be judged")
    supervisor = cluster.pid("supervisor")
    for name in ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway"):
        before = answers(cluster, name)
        old = cluster.pid(name)
        os.kill(supervisor, signal.SIGSTOP)
        try:
            os.kill(old, signal.SIGKILL)
            wait_for(lambda old=old: not is_alive(old), 60, f"{name} to be gone")
            for path in (cluster.home.path / "databases").glob(f"{name}.db*"):
                path.unlink()
        finally:
            os.kill(supervisor, signal.SIGCONT)
        wait_for(lambda name=name, old=old: cluster.pid(name) != old, 60, f"{name} to be started again")
        assert answers(cluster, name) == before, name


def settled(cluster):
    kinds = [type(e).__name__ for e in read_control(cluster)]
    return kinds.count("Settled") == kinds.count("TrialCreated")


def test_a_second_replica_takes_over_and_nothing_is_decided_twice(local_cluster, model, tmp_path):
    cluster = local_cluster()
    programs = {p.name: p for p in Cluster(cluster.plan, cluster.home).programs()}
    seconds = []
    supervisor = cluster.pid("supervisor")
    try:
        for name in ("searcher", "scheduler"):
            program = programs[name]
            database = {"STEADFAST_DATABASE_URL": f"sqlite:///{tmp_path}/{name}-2.db"}
            with (tmp_path / f"{name}-2.log").open("wb") as log:
                seconds.append(
                    subprocess.Popen(
                        program.command, env=program.environment | database, stdout=log, stderr=log
                    )
                )
        for name in ("searcher", "scheduler"):
            log = tmp_path / f"{name}-2.log"
            wait_for(lambda log=log: "service.ready" in log.read_text(), 60, f"the second {name}")
        id = cluster.create("config.yaml", model)
        wait_for(lambda: cluster.trials(id), 60, "trials")
        os.kill(supervisor, signal.SIGSTOP)
        for name in ("searcher", "scheduler"):
            os.kill(cluster.pid(name), signal.SIGKILL)
        for name in ("searcher", "scheduler"):
            log = tmp_path / f"{name}-2.log"
            wait_for(lambda log=log: "service.leads" in log.read_text(), 60, f"the second {name} to lead")
        cluster.api("POST", f"experiments/{id}/pause")
        cluster.api("POST", f"experiments/{id}/activate")
        assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
        assert no_double_decision(read_control(cluster))
    finally:
        os.kill(supervisor, signal.SIGCONT)
        for process in seconds:
            process.kill()
            process.wait()

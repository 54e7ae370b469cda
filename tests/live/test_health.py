"""What a cluster says of itself while parts of it hang, and what ends by itself then and is started again."""

import json
import os
import signal
from datetime import datetime
from pathlib import Path

import pytest
import requests

from services.local import status
from services.local.supervisor import SERVICES
from tests.fixtures import hanging
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)
PLAN: dict[str, str] = {}
"""Own, since parts of it hang."""
HANGS = "checkpoints"
STUCK_S = 4.0
DUMP = "most recent call first"


@pytest.fixture(scope="module")
def cluster(module_cluster):
    """A cluster one of whose services hangs on demand, and does not bear that for long."""
    module_cluster.stop(HANGS)
    folder = str(Path(hanging.__path__[0]))
    module_cluster.start(HANGS, PYTHONPATH=folder, STEADFAST_STUCK_S=str(STUCK_S))
    all_well(module_cluster)
    return module_cluster


def report(cluster):
    return requests.get(f"{cluster.address}/api/v1/master/health", timeout=60).json()


def all_well(cluster):
    def well():
        problems = {program.name: program.problems for program in status.program_statuses(cluster.home)}
        everyone = problems.keys() == {"broker", *SERVICES, *cluster.workers()}
        return everyone and not any(problems.values()) and report(cluster)["status"] == "up"

    wait_for(well, 60, "all to be well")


def reasons(cluster):
    return {(reason["condition"], reason["about"]): reason for reason in report(cluster)["reasons"]}


def page(cluster, name, path):
    ports = json.loads((cluster.home.path / "ports.json").read_text())
    return requests.get(f"http://127.0.0.1:{ports[name]}{path}", timeout=60)


def lasts(cluster, key):
    """Whether something has been wrong for longer than a process may stand still."""
    answer = report(cluster)
    since = [reason["since"] for reason in answer["reasons"] if (reason["condition"], reason["about"]) == key]
    now = datetime.fromisoformat(answer["time"])
    return bool(since) and (now - datetime.fromisoformat(since[0])).total_seconds() > STUCK_S + 1


@pytest.mark.full
def test_a_service_that_is_stopped_is_missed_by_all_and_goes_on_when_it_may(cluster):
    before = {name: cluster.pid(name) for name in cluster.names()}
    key, missed = ("nobody_leads", HANGS), f"nobody_leads: no {HANGS} replica leads, since"
    os.kill(before[HANGS], signal.SIGSTOP)
    try:
        wait_for(lambda: key in reasons(cluster), 60, "the gateway to miss it")
        answer = report(cluster)
        assert (answer["status"], answer["parts"][HANGS]) == ("degraded", "down")
        assert requests.get(f"{cluster.address}/health", timeout=60).status_code == 200
        for name in set(SERVICES) - {HANGS}:
            wait_for(
                lambda name=name: missed in page(cluster, name, "/healthz").text, 60, f"{name} to miss it"
            )
            assert page(cluster, name, "/healthz").status_code == 503
            # No orchestrator ends or avoids them for it.
            assert (
                page(cluster, name, "/livez").status_code == page(cluster, name, "/readyz").status_code == 200
            )
        # A worker hears nothing of services, and judges nobody but itself.
        assert [page(cluster, name, "/healthz").text for name in cluster.workers()] == ["ok\n"]
        done = cluster.det("master", "health", check=False)
        assert done.returncode == 1
        assert f"no {HANGS} replica leads" in done.stdout
        wait_for(lambda: lasts(cluster, key), 60, "it to last")
    finally:
        os.kill(before[HANGS], signal.SIGCONT)
    all_well(cluster)
    assert cluster.det("master", "health").returncode == 0
    assert {name: cluster.pid(name) for name in cluster.names()} == before


@pytest.mark.full
@pytest.mark.expected_log(rf"process\.stuck .*event loop|{DUMP}", reason="it says why it ends")
def test_one_whose_loop_never_comes_back_ends_and_is_started_again(cluster):
    before = cluster.pid(HANGS)
    os.kill(before, signal.SIGUSR1)
    wait_for(lambda: cluster.pid(HANGS) != before, 60, "it to be started again")
    assert f"in {hanging_function('block')}" in cluster.log(HANGS)
    all_well(cluster)


def hanging_function(name):
    assert (Path(hanging.__path__[0]) / "sitecustomize.py").read_text().count(f"def {name}(") == 1
    return name


@pytest.mark.expected_log(
    rf"process\.stuck .*CONTROL has made no progress|log\.lags .*CONTROL|{DUMP}", reason="it says why it ends"
)
def test_one_that_does_not_get_on_with_the_log_ends_and_is_started_again(cluster):
    before = cluster.pid(HANGS)
    os.kill(before, signal.SIGUSR2)

    def ended():
        # What it had asked for before is still handed on, and nothing behind that.
        cluster.api("POST", "workspaces", json={"name": os.urandom(8).hex()})
        return cluster.pid(HANGS) != before

    wait_for(ended, 60, "it to be started again")
    assert "hanging/sitecustomize.py" in cluster.log(HANGS)
    all_well(cluster)


@pytest.mark.full
def test_a_hanging_broker_is_reported_and_ends_no_process(cluster):
    before = {name: cluster.pid(name) for name in cluster.names()}
    os.kill(before["broker"], signal.SIGSTOP)
    try:
        # Of a broker that hangs the connection is given up after some seconds, and made anew in vain.
        wait_for(lambda: ("broker_away", "") in reasons(cluster), 60, "it to be told")
        wait_for(lambda: lasts(cluster, ("broker_away", "")), 60, "it to last")
        answer = requests.get(f"{cluster.address}/health", timeout=60)
        assert (answer.status_code, answer.json()["status"], answer.json()["parts"]["broker"]) == (
            503,
            "down",
            "down",
        )
        for name in before.keys() - {"broker"}:
            assert page(cluster, name, "/livez").status_code == 200
    finally:
        os.kill(before["broker"], signal.SIGCONT)
    all_well(cluster)
    assert {name: cluster.pid(name) for name in cluster.names()} == before

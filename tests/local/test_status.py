"""What is said of a local cluster's programs."""

import asyncio
import os
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from services.kit import conditions as names
from services.kit.conditions import Conditions
from services.kit.health import HealthPages
from services.kit.process_metrics import Measures
from services.local import __main__ as local
from services.local import status
from services.local.home import Home, Plan
from tests.fixtures.ports import reserved_port


@pytest.fixture
def home(tmp_path):
    return Home("c", tmp_path)


def shown(home, capsys, **messages):
    """The exit status and the lines, while a searcher says on its page what is wrong with it."""
    conditions = Conditions("searcher", clock=lambda: 0.0)
    with capture_logs():
        for name, message in messages.items():
            conditions.set_condition(name, {"": message})

    async def work():
        pages = HealthPages(conditions, Measures("searcher"))
        home.write("ports.json", {"searcher": pages.start(0), "metrics": reserved_port()})
        exit_status = await asyncio.to_thread(status.show, home, Plan(name="c", port=reserved_port()))
        pages.stop()
        return exit_status

    return asyncio.run(work()), capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("plan", "again"),
    [
        (Plan(name="determined"), " with: det deploy local cluster-up"),
        (
            Plan(name="c", slots=4, gpu=False),
            " as it was, --slots 4, with: det deploy local cluster-up --cluster-name c",
        ),
        (
            Plan(name="determined", port=8181, host="0.0.0.0", tls=True),  # noqa: S104
            " as it was, --master-port 8181 --host 0.0.0.0 --tls, with: det deploy local cluster-up",
        ),
    ],
)
def test_a_cluster_that_does_not_run(capsys, monkeypatch, tmp_path, plan, again):
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))
    assert status.show(Home(plan.name), plan) == status.NOT_RUNNING
    assert capsys.readouterr().out == f"cluster '{plan.name}' is not running; start it again{again}\n"


def test_a_cluster_that_does_not_exist(monkeypatch, tmp_path):
    """Its name was forgotten: the others are listed."""
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["services.local", "status"])
    with pytest.raises(SystemExit) as none:
        local.main()
    assert none.value.code == "there is no cluster 'determined'; start one with: det deploy local cluster-up"
    for name in ("small", "large"):
        Home(name).write_plan(Plan(name=name))
    Home("no-cluster").folder("logs")
    with pytest.raises(SystemExit) as others:
        local.main()
    assert "there are: 'large', 'small' (det: --cluster-name)" in str(others.value.code)


def test_each_program_with_all_that_is_wrong_with_it(home, capsys):
    me = os.getpid()
    home.write("processes.json", {"supervisor": me, "searcher": me})
    code, lines = shown(home, capsys)
    assert code == status.HEALTHY
    assert lines[1].split() == ["searcher", str(me), "well"]
    wrong = {names.BROKER_AWAY: "there is no connection", names.LOG_LAGS: "CONTROL is not read"}
    code, lines = shown(home, capsys, **wrong)
    assert code == status.UNHEALTHY
    assert "broker_away: there is no connection, since 1970" in lines[1]
    assert "log_lags: CONTROL is not read, since 1970" in lines[2]


def test_what_does_not_run_or_answer_is_said_to(home, capsys):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    home.write("processes.json", {"supervisor": os.getpid(), "scheduler": ended.pid, "metrics": os.getpid()})
    code, lines = shown(home, capsys)
    assert code == status.UNHEALTHY
    assert "is not running" in lines[1]
    assert "does not answer within" in lines[2]

"""What a plan makes of a cluster's programs, and what may be asked of one of them while they run."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time

import pytest

from services.kit import broker
from services.local.__main__ import _next_steps, _parser
from services.local.home import Home, Plan, ProgramRequest
from services.local.processes import Child, Program, is_alive
from services.local.supervisor import Cluster, worker_ids

DEADLINE_S = 60


def workers_of(folder, **plan):
    home = Home("test", folder)
    cluster = Cluster(Plan(name="test", **plan), home)
    return {p.name: dict(p.environment) for p in cluster.programs() if p.name in worker_ids(cluster.plan)}


def test_every_worker_has_its_own_id_home_and_pool(tmp_path):
    workers = workers_of(tmp_path, agents=3, slots=4, pools=["a", "b"])
    assert len(workers) == 3
    assert [env["STEADFAST_WORKER_ID"] for env in workers.values()] == list(workers)
    assert [env["STEADFAST_WORKER_POOL"] for env in workers.values()] == ["a", "b", "b"]
    assert {env["STEADFAST_WORKER_SLOTS"] for env in workers.values()} == {"4"}
    assert len({env["STEADFAST_WORKER_HOME"] for env in workers.values()}) == 3


def test_one_worker_is_called_after_the_host(tmp_path):
    ((name, environment),) = workers_of(tmp_path).items()
    assert name == worker_ids(Plan(name="test"))[0]
    assert not name.endswith("-1")
    assert environment["STEADFAST_WORKER_POOL"] == "default"


def test_the_pools_file_goes_to_those_who_read_it(tmp_path):
    cluster = Cluster(Plan(name="test", pools_file="/etc/pools.yaml"), Home("test", tmp_path))
    programs = [
        p.name for p in cluster.programs() if p.environment.get("STEADFAST_POOLS") == "/etc/pools.yaml"
    ]
    assert programs == ["scheduler", "gateway"]


def test_the_command_line(tmp_path):
    args = _parser().parse_args(["up", "--workers", "3", "--slots", "4", "--pool", "a", "--pools", "p.yaml"])
    assert (args.agents, args.slots, args.pool, args.pools) == (3, 4, ["a"], "p.yaml")


def test_a_plan_is_found_again(tmp_path):
    home = Home("test", tmp_path)
    plan = Plan(name="test", agents=2, pools=["a"], settings={"STEADFAST_X": "1"})
    home.write_plan(plan)
    assert Home("test", tmp_path).plan() == plan


def test_held_ports_are_refused_to_others_and_can_be_reused(tmp_path):
    home = Home("test", tmp_path)
    for _ in ("chosen", "kept from the last start"):
        with contextlib.ExitStack() as held:
            Cluster(Plan(name="test", agents=2), home, held)
            ports = home.read("ports.json").values()
            assert len(set(ports)) == len(ports) == 11
            for port in ports:
                for _ in range(2):
                    with socket.create_server(("127.0.0.1", port)):
                        pass
                with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
                    stranger.bind(("127.0.0.1", port))
        with broker.held_port(port) as again:
            assert broker.port_of(again) == port


def test_a_port_that_another_program_took_stops_no_start(tmp_path):
    home = Home("test", tmp_path)
    Cluster(Plan(name="test"), home)
    ports = home.read("ports.json")
    with socket.create_server(("127.0.0.1", ports["searcher"])), contextlib.ExitStack() as held:
        Cluster(Plan(name="test"), home, held)
    assert home.read("ports.json") == ports


@pytest.mark.live
def test_a_program_is_stopped_and_started_with_other_settings(tmp_path):
    home = Home("test", tmp_path)
    log = tmp_path / "log"
    script = "import os, time; print(os.environ.get('WORD'), flush=True); time.sleep(600)"
    program = Program("it", [sys.executable, "-u", "-c", script], dict(os.environ), log)
    pids = []

    async def until(true):
        deadline = time.monotonic() + DEADLINE_S
        while not true():
            assert time.monotonic() < deadline, (printed(), pids)
            await asyncio.sleep(0.01)

    def printed():
        return log.read_text().split() if log.exists() else []

    async def story():
        child = Child(program, lambda name, pid: pids.append(pid), home.read_request)
        keeping = asyncio.create_task(child.keep_running())
        await until(lambda: printed() == ["None"] and len(pids) == 1)
        os.kill(pids[-1], signal.SIGKILL)
        await until(lambda: printed() == ["None", "None"] and len(pids) == 2)
        home.write_request("it", ProgramRequest(stopped=True))
        os.kill(pids[-1], signal.SIGKILL)
        await until(lambda: not is_alive(pids[-1]))
        assert len(pids) == 2
        home.write_request("it", ProgramRequest(settings={"WORD": "hello"}))
        await until(lambda: keeping.done() or printed() == ["None", "None", "hello"])
        await child.stop()
        await keeping

    asyncio.run(story())
    assert not any(is_alive(pid) for pid in pids)


class SlowToStart:
    """Starts programs as forks would, and has each wait until it may be there."""

    def __init__(self):
        self.starting, self.go, self.environments = asyncio.Event(), asyncio.Event(), []

    def forkable_module(self, command, environment):
        return "it"

    async def start(self, module, environment, output):
        self.environments.append(environment)
        process = await asyncio.create_subprocess_exec("sleep", "600")
        self.starting.set()
        await self.go.wait()
        return process


@contextlib.asynccontextmanager
async def being_started(folder):
    """A child that is just being started; with what starts it, its home, and the processes it has had."""
    home, pids, slow = Home("test", folder), [], SlowToStart()
    program = Program("it", ["sleep", "600"], {}, folder / "log")
    child = Child(program, lambda name, pid: pids.append(pid), home.read_request, slow)
    keeping = asyncio.create_task(child.keep_running())
    await asyncio.wait_for(slow.starting.wait(), DEADLINE_S)
    yield child, slow, home, pids
    await asyncio.wait_for(keeping, DEADLINE_S)
    assert not any(is_alive(pid) for pid in pids)


@pytest.mark.live
def test_who_is_stopped_while_it_is_being_started_ends(tmp_path):
    async def story():
        async with being_started(tmp_path) as (child, slow, _, pids):
            await child.stop()
            slow.go.set()
        assert len(pids) == 1

    asyncio.run(story())


@pytest.mark.live
def test_settings_requested_during_a_start_apply_to_the_next(tmp_path):
    async def story():
        async with being_started(tmp_path) as (child, slow, home, _):
            slow.starting.clear()
            home.write_request("it", ProgramRequest(settings={"WORD": "hello"}))
            slow.go.set()
            await asyncio.wait_for(slow.starting.wait(), DEADLINE_S)
            await child.stop()
        assert [environment.get("WORD") for environment in slow.environments] == [None, "hello"]

    asyncio.run(story())


@pytest.mark.parametrize(("host", "temporary"), [("127.0.0.1", True), ("192.0.2.1", False)])
def test_where_the_platform_may_read_and_delete(tmp_path, host, temporary):
    home = Home("test", tmp_path / "data")
    cluster = Cluster(Plan(name="test", host=host, storage=str(tmp_path / "store")), home)
    for program in (p for p in cluster.programs() if p.name in ("gateway", *worker_ids(cluster.plan))):
        environment = program.environment
        assert environment["STEADFAST_CHECKPOINTS"] == str(tmp_path / "store")
        assert bool(environment["STEADFAST_STORAGE_ROOTS"]) == temporary
        # Those of other clusters of this user, too.
        assert environment["STEADFAST_PRIVATE_PATHS"] == str(tmp_path / "data" / "steadfast")


@pytest.mark.parametrize(
    ("uid", "settings", "warned"),
    [
        (0, {}, True),
        (0, {"STEADFAST_WORKER_RUN_AS": "nobody"}, False),
        (1000, {}, False),
    ],
)
def test_a_cluster_whose_tasks_are_root_says_so(tmp_path, monkeypatch, uid, settings, warned):
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.delenv("STEADFAST_WORKER_RUN_AS", raising=False)
    steps = "\n".join(_next_steps(Plan(name="mine", settings=settings), Home("mine", tmp_path)))
    assert ("tasks run as root and can read the cluster's keys" in steps) == warned


def test_a_cluster_whose_scripts_could_sign_in_says_so(tmp_path, monkeypatch):
    """Where tasks are kept apart from the platform, an empty password would let them in again."""
    monkeypatch.delenv("STEADFAST_WORKER_RUN_AS", raising=False)
    home, apart = Home("mine", tmp_path), {"STEADFAST_WORKER_RUN_AS": "nobody"}
    assert [warned_of_passwords(settings, home) for settings in (apart, {})] == [True, False]
    home.store_initial_password("a-long-one")
    assert not warned_of_passwords(apart, home)


def warned_of_passwords(settings, home):
    steps = _next_steps(Plan(name="mine", settings=settings), home)
    return any("give 'admin' and 'determined' passwords" in step for step in steps)


def test_the_start_of_a_cluster_prints_the_next_steps(tmp_path):
    home = Home("mine", tmp_path)
    steps = _next_steps(Plan(name="mine", port=8181), home)
    assert "export DET_MASTER=http://127.0.0.1:8181" in steps[1]
    assert steps[-1].endswith("det deploy local cluster-down --cluster-name mine")
    usual = _next_steps(Plan(name="determined"), home)
    assert not any("DET_MASTER" in step for step in usual)
    assert usual[-1].endswith("cluster-down")


@pytest.mark.parametrize(("processors", "taken"), [(1, "1"), (2, "1"), (4, "2"), (8, "4"), (64, "4")])
def test_the_broker_leaves_half_of_the_processors_to_those_whom_it_serves(processors, taken):
    assert broker.environment({"HOME": "/h"}, processors) == {"HOME": "/h", "GOMAXPROCS": taken, "GOGC": "50"}
    set_by_operator = {"GOMAXPROCS": "7", "GOGC": "100"}
    assert broker.environment(set_by_operator, processors) == set_by_operator


def test_the_broker_of_a_local_cluster_is_started_so(tmp_path, monkeypatch):
    monkeypatch.delenv("GOMAXPROCS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    cluster = Cluster(Plan(name="test"), Home("test", tmp_path))
    (started,) = (p for p in cluster.programs() if p.name == "broker")
    assert started.environment["GOMAXPROCS"] == "3"

"""Additional workers for a cluster on this machine, each under its own supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

from services.kit import host_processes
from services.local.control import stop_recorded
from services.local.home import Home, Plan, ProgramRequest, data_directory
from services.local.logs import last_lines
from services.local.preconditions import CannotStart, is_running
from services.local.processes import Child
from services.local.starting import POLL_S, Progress
from services.local.supervisor import Cluster

REGISTERED = b"worker.registered"
"""Logged by a worker once the scheduler may place runs on it."""
AGENT_FILE = "agent-{}.json"
_started: list[subprocess.Popen[bytes]] = []
"""Keeps references, because dropping a Popen object warns about its running process."""


def agent_up(host: str, port: int, name: str, *, pool: str, slots: int, gpu: bool) -> Home:
    """Start a worker for the cluster at this port, replacing one of the same name.

    Returns once it has registered.
    """
    _check_is_local(host)
    home, plan = _cluster_at(port)
    agent_down(name)
    log = home.folder("logs") / f"{name}.log"
    log.touch()
    # The log is appended to, and an earlier start of this worker has left the same line in it.
    before = log.stat().st_size
    command = [sys.executable, "-P", "-m", "services.local", "agent-run", "--name", plan.name]
    command += ["--agent-name", name, "--pool", pool, "--slots", str(slots), *([] if gpu else ["--no-gpu"])]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=dict(os.environ) | {"STEADFAST_HOME": str(home.path.parent.parent)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    _started.append(process)
    home.write(AGENT_FILE.format(name), {"pid": process.pid, "name": name})
    progress = Progress(time.monotonic())
    while REGISTERED not in log.read_bytes()[before:]:
        progress.note(time.monotonic(), frozenset(), _work(process.pid))
        if process.poll() is not None or progress.has_stalled(time.monotonic()):
            agent_down(name)
            raise CannotStart("\n".join([f"agent '{name}' did not come up; see {log}", *last_lines(log)]))
        time.sleep(POLL_S)
    return home


def _work(supervisor: int) -> dict[str, float]:
    workers = host_processes.children_of(supervisor)
    return {"worker": max(map(host_processes.active_s, [supervisor, *workers]))}


def agent_down(name: str | None) -> list[str]:
    """Stop the additional worker with this name, or all. Returns the names of those that were running."""
    files = sorted((data_directory() / "steadfast").glob(f"*/{AGENT_FILE.format(name or '*')}"))
    return [path.stem.removeprefix("agent-") for path in files if stop_recorded(path)]


def agent_run(home: Home, plan: Plan, name: str, *, pool: str, slots: int, gpu: bool) -> None:
    """Keep one worker running in the foreground until SIGTERM or SIGINT."""
    cluster = Cluster(replace(plan, pools=[pool], slots=slots, gpu=gpu), home)

    async def run_until_stopped() -> None:
        child = Child(cluster.worker(name), lambda *_: None, lambda _: ProgramRequest())
        work = asyncio.ensure_future(child.keep_running())
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await stop.wait()
        await child.stop()
        work.cancel()

    asyncio.run(run_until_stopped())


def _check_is_local(host: str) -> None:
    try:
        addresses = {item[4][0] for item in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise CannotStart(f"'{host}' is not a valid host: {error}") from None
    own = {"127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 - compared, not listened at
    if host != socket.gethostname() and not addresses <= own:
        raise CannotStart(
            f"agent-up starts workers for a cluster of this machine, not of '{host}'; "
            "a worker on another machine is started with the cluster's credentials: python -m worker"
        )


def _cluster_at(port: int) -> tuple[Home, Plan]:
    for path in sorted((data_directory() / "steadfast").glob("*/plan.json")):
        home = Home(path.parent.name)
        plan = home.plan()
        if plan is not None and plan.port == port and is_running(home):
            return home, plan
    raise CannotStart(f"no cluster of this machine runs at port {port}; see: det deploy local cluster-up")

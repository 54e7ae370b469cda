"""Loads the modules shared by all services once, and forks for each service.

    python -m services.local.fork_server HOME MODULE ...

or a fork of a supervisor that has just begun (`ForkClient.fork_server`), which shares its memory with it.

Imports take each service a second of processor time and 40 to 80 MB, nearly the same for all. A fork of a
process that has done them starts at once, and shares that memory as long as it does not write to it.

The server receives requests on a socket (`services.local.fork_client` is the client) and does nothing else:
no threads, no connections, no event loop. A fork runs what `python -m MODULE` would run.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import setproctitle

from services.kit.host_processes import die_with_parent

if TYPE_CHECKING:
    from services.kit.service import Service

SOCKET_VARIABLE = "STEADFAST_FORK_SERVER"
"""Variable with the descriptor of the request socket."""
REQUEST_BYTES = 128 * 1024
LOADED_WHEN_RUNNING = ("sqlalchemy.dialects.sqlite", "uvloop")
"""What services load only when they use their database, or begin their event loop."""
DATABASE = "sqlite://"
"""An empty database in memory."""


def main() -> None:
    """Be the server that the command line describes; see `serve`."""
    control = socket.socket(fileno=int(os.environ.pop(SOCKET_VARIABLE)))
    serve(control, sys.argv[1], sys.argv[2:])


def serve(control: socket.socket, home: str, modules: Sequence[str]) -> None:
    """Serve until the client closes the socket. Returns only in a fork, after running a service."""
    preload(modules)
    # The supervisor ends services explicitly, and the exit status of forks is not used.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Ignored explicitly, the kernel reaps the forks.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    module = _serve_forks(control, home)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def preload(services: Sequence[str]) -> None:
    """Import what services need. A module that fails to import reports that when its service is started."""
    # Collections while modules load find next to nothing, and take a tenth of the time.
    gc.disable()
    importlib.import_module("services.kit.import_trimming")
    for module in (*(f"{name}.app" for name in services), *LOADED_WHEN_RUNNING):
        try:
            importlib.import_module(module)
        except Exception as error:
            print(f"{module} cannot be preloaded: {error!r}", file=sys.stderr, flush=True)
    _rehearse([service for name in services if (service := _service_of(name)) is not None])
    # Exclude everything loaded so far from collection, which would copy it into each fork. Garbage stays:
    # freed, it would leave holes in shared pages, and each fork would copy those whose holes it fills.
    gc.freeze()
    gc.enable()


def _service_of(name: str) -> Service | None:
    """Return the service of a module; None if it has none, or could not be imported."""
    service: Service | None = getattr(sys.modules.get(f"{name}.app"), "SERVICE", None)
    return service


def _rehearse(services: Sequence[Service]) -> None:
    """Do what services do when they start, as far as it needs neither settings nor the broker.

    What is made when it is first needed is then made before the forks, which share it: routes, decoders, and
    much that SQLAlchemy keeps (docs/decisions/0094). A service for which that fails says so when it starts.
    """
    # One database is enough: what is kept is the same for all.
    for work in [*(service.prepare for service in services), *map(_database_work, services[:1])]:
        try:
            work()
        except Exception as error:
            print(f"a start cannot be rehearsed: {error!r}", file=sys.stderr, flush=True)


def _database_work(service: Service) -> Callable[[], None]:
    """Return the opening of an empty database, and all that a service reads from it first."""
    from services.kit.migrate import open_database
    from services.kit.snapshot import Snapshot, furthest_positions

    def work() -> None:
        database = open_database(DATABASE, service.rules.owner, service.folder)
        snapshot = Snapshot(service.rules.owner, service.rules.state)
        try:
            database.read_sync(lambda c: (furthest_positions(c), snapshot.marks(c), snapshot.load(c)))
        finally:
            # Nothing is inherited by the forks: no connection, and no thread was needed.
            database.close()

    return work


def _serve_forks(control: socket.socket, home: str) -> str:
    """Fork on request. Returns in each fork, with the module to run."""
    while True:
        request, (output, answer), _, _ = _receive_request(control)
        # The pid is taken before the fork: in the child, `getppid` could already be that of the process that
        # inherits it.
        server, pid = os.getpid(), os.fork()
        if pid == 0:
            # Otherwise a fork would keep the socket open after the supervisor's end, and could read requests
            # meant for the server.
            control.close()
            os.close(answer)
            wanted = json.loads(request)
            _set_up_fork(wanted["module"], wanted["environment"], output, server, home)
            return str(wanted["module"])
        os.close(output)
        _send_process(answer, pid)


def _receive_request(control: socket.socket) -> tuple[bytes, list[int], int, object]:
    received = socket.recv_fds(control, REQUEST_BYTES, 2)
    if len(received[1]) != 2:
        # The supervisor is gone; exit, which also ends all forks.
        os._exit(0)
    return received


def _send_process(answer: int, pid: int) -> None:
    """Send a fork's pid and its process descriptor, because the pid may be reused later."""
    with socket.socket(fileno=answer) as reply:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            # It has already ended: send no answer.
            return
        try:
            reply.sendmsg(
                [str(pid).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [process]))]
            )
        except OSError:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def _set_up_fork(module: str, environment: dict[str, str], output: int, server: int, home: str) -> None:
    """Set up the process as if it had been started on its own."""
    # A killed supervisor must not leave half a cluster behind: it takes the server down, which takes its
    # forks.
    die_with_parent(server)
    name = module.rpartition(".")[2]
    # The name shown by `ps` and `top`. The folder identifies the cluster and helps to find its leftovers.
    setproctitle.setproctitle(f"steadfast {name} {home}")
    setproctitle.setthreadtitle(name)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    # The C library has read TZ before the environment was replaced.
    time.tzset()
    sys.argv[1:] = []


if __name__ == "__main__":
    main()

"""Loads once what all services are made of, and is forked for each.

    python -m services.local.fork_server HOME MODULE ...

Importing takes a second of a processor and 40 to 80 MB for each service, and is nearly the same for all.
A process that was forked from one which has done it starts at once, and shares that memory for as long as
it does not write to it.

It is told on a socket what to start (`services.local.forks` is the other end) and has nothing else to do: no
threads, no connections, no loop. What runs in a fork is what `python -m MODULE` runs.
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
from collections.abc import Iterable

import setproctitle

from services.kit.host_processes import die_with_parent

CONTROL = "STEADFAST_FORK_SERVER"
"""Variable with the descriptor that it is told on."""
REQUEST_BYTES = 128 * 1024


def main() -> None:
    """Serve until the other end is closed; comes back in a fork alone, of which it has made a service."""
    control = socket.socket(fileno=int(os.environ.pop(CONTROL)))
    preload(sys.argv[2:])
    # Who is told to end is told by the supervisor; and nobody asks how a fork has ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    module = _served(control)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def preload(services: Iterable[str]) -> None:
    """Import what services need. One that cannot be imported says so itself, when it is started."""
    importlib.import_module("services.kit.import_trimming")
    # The last two are loaded by a service when it runs: to make its tables, and to speak with them.
    for module in (*(f"{name}.app" for name in services), "sqlalchemy.dialects.sqlite", "alembic.command"):
        try:
            importlib.import_module(module)
        except Exception as error:
            print(f"{module} is not loaded beforehand: {error!r}", file=sys.stderr, flush=True)
    gc.collect()
    # What is here now is never looked at again by a collection: that would copy all of it into each fork.
    gc.freeze()


def _served(control: socket.socket) -> str:
    """Fork for whoever asks; returns in a fork, with the module that is to be run there."""
    while True:
        request, (output, answer), _, _ = _received(control)
        server, pid = os.getpid(), os.fork()
        if pid == 0:
            control.close()
            os.close(answer)
            wanted = json.loads(request)
            _become(wanted["module"], wanted["environment"], output, server)
            return str(wanted["module"])
        os.close(output)
        _tell(answer, pid)


def _received(control: socket.socket) -> tuple[bytes, list[int], int, object]:
    found = socket.recv_fds(control, REQUEST_BYTES, 2)
    if len(found[1]) != 2:
        # The supervisor is gone, and this process with all its forks goes, too.
        os._exit(0)
    return found


def _tell(answer: int, pid: int) -> None:
    """Send the number of a fork, and a descriptor of it: the number may be another's later."""
    with socket.socket(fileno=answer) as reply:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            # It has ended already: no answer.
            return
        try:
            reply.sendmsg(
                [str(pid).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [process]))]
            )
        except OSError:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def _become(module: str, environment: dict[str, str], output: int, server: int) -> None:
    """Be like a process that was started for itself."""
    # A killed supervisor must not leave half a cluster behind: it takes the server along, and that its forks.
    die_with_parent(server)
    name = module.rpartition(".")[2]
    # As `ps` and `top` show it; the folder tells whose it is, and finds what a cluster has left.
    setproctitle.setproctitle(f"steadfast {name} {sys.argv[1]}")
    setproctitle.setthreadtitle(name)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[1:] = []


if __name__ == "__main__":
    main()

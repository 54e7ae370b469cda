"""The life of a template: it loads modules, reports whether it is fit to fork, and starts runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import traceback

from worker.shim.command import EnteredCommand, libc
from worker.shim.life import HANDLED_SIGNALS, claim, run_shim, start_session
from worker.warm.inside import ending, first_imports, fitness, preloading
from worker.warm.inside.random_generators import Generators
from worker.warm.inside.script_process import Script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn

STARTED, REFUSED = b"+", b"-"
PACKET_BYTES = 128 * 1024


class MainProgram:
    """Replaces runpy in `sys.modules` while the interpreter starts."""

    def __init__(
        self,
        control: int,
        order: int,
        root: str,
        platform_modules: dict[str, ModuleType],
        runpy: ModuleType | None,
    ) -> None:
        self._control = socket.socket(fileno=control)
        self._order = order
        self._root = root
        self._platform_modules = platform_modules
        self._runpy = runpy

    @property
    def _run_module_as_main(self) -> Any:
        """What the interpreter calls as its main program: called once, and returns in each fork."""
        self._remove_traces()
        try:
            template = Template(self._control, self._order, self._root, self._platform_modules)
            return template.serve()
        except BaseException:
            # The interpreter must not continue: it has no main program.
            traceback.print_exc()
            os._exit(1)

    def _remove_traces(self) -> None:
        del sys.modules["runpy"]
        if self._runpy is not None:
            sys.modules["runpy"] = self._runpy
        own = sys.modules.get("sitecustomize")
        if getattr(own, "__file__", "").startswith(os.path.dirname(__file__)):
            del sys.modules["sitecustomize"]
        # The folder in which this process was started means nothing to scripts.
        del sys.path[0]


def _handler_after_shim(number: int) -> Any:
    """A signal's handler in a script that was started cold.

    Signals its shim handles are not ignored there.
    """
    handler = signal.getsignal(number)
    if handler is not signal.SIG_IGN or number not in HANDLED_SIGNALS:
        return handler
    return signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL


class Template:
    """The template process."""

    def __init__(
        self, control: socket.socket, order: int, root: str, platform_modules: dict[str, ModuleType]
    ) -> None:
        self._control = control
        self._order = order
        self._root = root
        self._platform_modules = platform_modules
        handlers = {int(n): _handler_after_shim(n) for n in HANDLED_SIGNALS}
        self._signals = {number: handler for number, handler in handlers.items() if handler is not None}

    def serve(self) -> Any:
        """Start runs until the worker is gone.

        Returns only in forks that run a script, with its main program.
        """
        with open(self._order, "rb", closefd=False) as file:
            order = json.load(file)
        silent = os.open(os.devnull, os.O_RDWR)
        for fd in (1, 2):
            os.dup2(silent, fd)
        os.close(silent)
        modules = order["modules"] or first_imports.find(order["script"], order["without"])
        if modules:
            ending.spare_openssl()
        shell = preloading.changes_by_shell(order["env"])
        before, roots, generators = dict(os.environ), preloading.package_folders(), Generators()
        report, stored_paths = fitness.prepare(modules, frozenset(order["names"]), roots, generators)
        self._send_report(report)
        if report["why"]:
            self._end()
        changes = preloading.changes(before, os.environ)
        files = preloading.LoadedFiles(roots)
        self._script = Script(self._signals, shell, changes, roots, stored_paths, generators)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        libc()
        ending.keep(self, order, before, roots, generators, report, stored_paths, shell, changes, files)
        while True:
            packet, fds = self._receive_request()
            if files.changed():
                os.write(fds[0], REFUSED)
                self._end()
            if os.fork() == 0:
                return self._run(json.loads(packet), fds[0])
            os.close(fds[0])

    def _send_report(self, report: dict[str, Any]) -> None:
        os.ftruncate(self._order, 0)
        os.pwrite(self._order, json.dumps({"pid": os.getpid(), **report}).encode(), 0)
        os.close(self._order)
        self._control.send(b"ready")

    def _receive_request(self) -> tuple[bytes, list[int]]:
        packet, fds, _, _ = socket.recv_fds(self._control, PACKET_BYTES, 1)
        if not packet:
            self._end()
        return packet, fds

    def _end(self) -> NoReturn:
        os._exit(0)

    def _run(self, request: dict[str, Any], ready_fd: int) -> Any:
        """In a fork: act as the shim of a run, and in a fork of that as its script."""
        try:
            self._control.close()
            start_session(request["run"])
            path = list(sys.path)
            sys.path.append(self._root)
            sys.modules.update(self._platform_modules)
            self._shim(request, ready_fd, path)
        except EnteredCommand as script:
            return script.main
        except BaseException:
            traceback.print_exc()
        os._exit(1)

    def _shim(self, request: dict[str, Any], ready_fd: int, path: list[str]) -> None:
        def ready() -> None:
            # The worker is gone and will find the run by its files.
            with contextlib.suppress(BrokenPipeError):
                os.write(ready_fd, STARTED)
            os.close(ready_fd)

        run_dir = request["run"]
        if not claim(run_dir):
            ready()
            os._exit(0)
        become = self._script.become_function(request, self._platform_modules, path)
        run_shim(run_dir, ready, become, through_shell=request["through_shell"])
        os._exit(0)

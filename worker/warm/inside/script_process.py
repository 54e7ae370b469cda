"""In a fork of a template: become the script's process, as if its interpreter had just been started."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import time

from worker.shim.command import EnteredCommand
from worker.warm.inside import ending, preloading, process_title, ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

    from worker.warm.inside.random_generators import Generators
    from worker.warm.inside.working_directory import StoredPaths

MODULES_FILE = "modules.txt"
"""File in a run's folder with what it had loaded at its end."""


class Script:
    """What all scripts of a template have in common."""

    def __init__(
        self,
        signals: Mapping[int, Any],
        shell: Mapping[str, str | None],
        imports: Mapping[str, str | None],
        roots: Sequence[str],
        stored_paths: Sequence[StoredPaths],
        generators: Generators,
    ) -> None:
        """Takes what a fork must restore or change.

        `signals` are the handlers with which an interpreter begins, of signals that templates or shims
        handle. `shell` and `imports` are the changes
        that a shell, and the imports, make to the environment. `roots` contain the installed packages.
        `stored_paths` are where modules store the working directory.
        """
        self._signals = signals
        self._shell = shell
        self._imports = imports
        self._roots = roots
        self._stored_paths = stored_paths
        self._generators = generators
        self._preloaded = frozenset(sys.modules)

    def become_function(
        self, request: Mapping[str, Any], platform_modules: Mapping[str, ModuleType], path: Sequence[str]
    ) -> Callable[..., NoReturn]:
        """Return the function that turns the child of a shim into the script of a run.

        `platform_modules` are modules that only the shim uses; `path` is `sys.path` without them.
        """

        def become(
            argv: Sequence[str],
            cwd: str,
            env: Mapping[str, str],
            out: int,
            err: int,
            error_fd: int,
            change_user: Callable[..., None],
        ) -> NoReturn:
            try:
                self._set_up_process(cwd, env, (self._shell, self._imports), out, err)
                for name in platform_modules:
                    sys.modules.pop(name, None)
                sys.path[:] = path
                if request["ranks"]:
                    self._serve_ranks(request["run"], request["words"][0])
                main = self._prepare_main(request, os.getcwd())
            except EnteredCommand:
                raise
            except BaseException as error:
                os.write(error_fd, f"cannot start {list(argv)}: {error!r}".encode())
                os._exit(127)
            raise EnteredCommand(main.call)

        return become

    def _prepare_main(self, request: Mapping[str, Any], cwd: str) -> _Main:
        """Prepare the main program, in a process that must look as the request says."""
        ending.own_main()
        main = _module(request) if request["is_module"] else _file(request)
        process_title.set_title(request["words"], os.environ)
        self._generators.reseed()
        _refresh_modules(cwd)
        for paths in self._stored_paths:
            paths.relocate(cwd)
        atexit.register(
            _write_loaded_modules,
            os.path.join(request["run"], MODULES_FILE),
            self._roots,
            self._preloaded,
            os.getpid(),
        )
        _close_all_but_standard_streams(keep=main.descriptor)
        return main

    def _serve_ranks(self, run: str, python: str) -> None:
        """Start a process from which the launcher's ranks are forked. In these ranks, `EnteredCommand` is
        raised."""
        launcher_env, loaded = dict(os.environ), set(sys.modules)

        def become_rank(client_request: dict[str, Any], out: int, err: int) -> NoReturn:
            request = ranks.parse_request(client_request, python, launcher_env, loaded) | {"run": run}
            self._set_up_process(client_request["cwd"], client_request["env"], (self._imports,), out, err)
            raise EnteredCommand(self._prepare_main(request, os.getcwd()).call)

        address, server = ranks.serve(become_rank)
        os.environ[ranks.ADDRESS] = address
        # It would end anyway, but perhaps not before the shim looks for leftover processes.
        atexit.register(_end_server, server, os.getpid())

    def _set_up_process(
        self,
        cwd: str,
        env: Mapping[str, str],
        changed: Sequence[Mapping[str, str | None]],
        out: int,
        err: int,
    ) -> None:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, name in ((null, 0), (out, 1), (err, 2)):
            os.dup2(fd, name)
        signal.set_wakeup_fd(-1)
        for number, handler in self._signals.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        for changes in changed:
            for variable, value in changes.items():
                if value is None:
                    os.environ.pop(variable, None)
                else:
                    os.environ[variable] = os.getcwd() if value == preloading.CWD else value


class _Main:
    """The main program. `call` is C code that takes any two arguments and runs it with no frame below."""

    def __init__(self, call: Any, descriptor: int = -1) -> None:
        self.call = call
        self.descriptor = descriptor


def _file(request: Mapping[str, Any]) -> _Main:
    """A script, run by the function that the interpreter itself uses for scripts."""
    import functools

    script = request["main"]
    sys.argv[:] = [script, *request["arguments"]]
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    path = os.fsencode(os.path.join(os.getcwd(), script))
    opened = _libc.fopen(path, b"rbe")
    if not opened:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), script)
    call = functools.partial(_run_file, opened, path, 1, None)
    return _Main(call, _libc.fileno(ctypes.c_void_p(opened)))


def _end(result: int, *_: object) -> int:
    """A failed script has already printed its error; only the exit status is left to set."""
    if result:
        raise SystemExit(1)
    ending.main_returned()
    return result


def _module(request: Mapping[str, Any]) -> _Main:
    """A module, run by runpy, as the interpreter does."""
    import functools
    import runpy

    sys.argv[:] = ["-m", *request["arguments"]]
    sys.path.insert(0, os.getcwd())
    real = runpy._run_module_as_main  # type: ignore[attr-defined]
    return _Main(functools.partial(_call, real, (request["main"], True), {}))


def _end_module(result: object, *_: object) -> object:
    ending.main_returned()
    return result


# Set up here, and not in each fork.
_libc, _interpreter = ctypes.CDLL(None, use_errno=True), ctypes.PyDLL(None)
_libc.fopen.restype = ctypes.c_void_p
_run_file: Any = _interpreter.PyRun_AnyFileExFlags
_run_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
_run_file.restype, _run_file.errcheck = ctypes.c_int, _end
_call: Any = _interpreter.PyObject_Call
_call.argtypes, _call.restype, _call.errcheck = [ctypes.py_object] * 3, ctypes.py_object, _end_module


def _refresh_modules(cwd: str) -> None:
    """Update what modules stored about the process in which they were imported."""
    sys.orig_argv[:] = process_title.current_command_line()
    time.tzset()
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes.ORIGINAL_DIR = cwd
        processes.current_process().authkey = os.urandom(32)
    logging: Any = sys.modules.get("logging")
    if logging is not None:
        logging._startTime = time.time_ns() if isinstance(logging._startTime, int) else time.time()
    threading = sys.modules.get("threading")
    if threading is not None:
        threading.main_thread()._set_native_id()


def _close_all_but_standard_streams(keep: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if (fd := int(name)) > 2 and fd != keep:
            try:
                os.close(fd)
            except OSError:
                # The descriptor that listed the others.
                continue


def _end_server(server: int, pid: int) -> None:
    if os.getpid() == pid:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def _write_loaded_modules(path: str, roots: Sequence[str], preloaded: frozenset[str], pid: int) -> None:
    """Report what this run has loaded beside what its template had, for the next template.

    Looking at the modules of the template would copy their memory into this process.
    """
    if os.getpid() != pid:
        return
    try:
        if names := preloading.loaded_package_modules(roots, preloaded):
            # A launcher and its ranks have different modules, so append.
            with open(path, "a") as file:
                file.write("\n".join([*names, ""]))
    except (OSError, RuntimeError):
        return

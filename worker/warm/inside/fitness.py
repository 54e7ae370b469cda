"""Checks whether an interpreter with loaded packages can be forked, and each fork acts like a fresh one."""

from __future__ import annotations

import contextlib
import gc
import locale
import logging
import os
import resource
import select
import signal
import sys
import threading

from worker.warm.inside import ending, preloading, process_title
from worker.warm.inside.random_generators import Generators
from worker.warm.inside.working_directory import StoredPaths, record_cwd_readers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, NoReturn

PROBE_S = 5.0
RLIMIT_KINDS = 16


class Unfit(Exception):
    """Why this process must not be forked. `culprit` is what was loaded last, if known."""

    def __init__(self, why: str, culprit: str = "") -> None:
        super().__init__(why)
        self.culprit = culprit


def prepare(
    modules: Sequence[str], per_run: frozenset[str], folders: Sequence[str], generators: Generators
) -> tuple[dict[str, Any], list[StoredPaths]]:
    """Load those modules that are in the folders, and check what became of this process.

    `per_run` are variables that runs have and this process does not. Returns a report for the worker, and
    where modules store the working directory.
    """
    why = culprit = ""
    stored_paths: list[StoredPaths] = []
    watchful = ending.watchful()
    try:
        _check_unobserved()
        stored_paths = _load(modules, folders, per_run, generators)
        _probe()
    except Unfit as error:
        why, culprit = str(error), error.culprit
    gc.collect()
    ending.install(watchful)
    gc.freeze()
    tops = sorted({name.partition(".")[0] for name in sys.modules})
    report = {
        "why": why,
        "culprit": culprit,
        "modules": preloading.loaded_package_modules(folders),
        "tops": tops,
    }
    return report, stored_paths


def _check_unobserved() -> None:
    """Check that no tool observes this interpreter, such as one that measures coverage."""
    monitoring = getattr(sys, "monitoring", None)
    watched = monitoring is not None and any(map(monitoring.get_tool, range(6)))
    if sys.gettrace() or sys.getprofile() or watched:
        raise Unfit("a tool watches the interpreter from its start on")
    if len(_threads()) > 1:
        raise Unfit("the interpreter has threads from its start on")


def _load(
    modules: Sequence[str], folders: Sequence[str], per_run: frozenset[str], generators: Generators
) -> list[StoredPaths]:
    before, descriptors = _state(), _descriptors()
    with (
        _record_variable_reads(per_run) as variables_read,
        record_cwd_readers() as cwd_readers,
        generators.track_seeding(),
    ):
        for imported in modules:
            name = imported.partition(":")[0]
            if imported in sys.modules or not preloading.is_installed_package(name, folders):
                continue
            preloading.load(imported)
            generators.record_new()
            if variables_read:
                raise Unfit(f"{name} asks for {variables_read[0]} while it is imported", name)
            if _descriptors() != descriptors:
                raise Unfit(f"{name} opens files or sockets while it is imported", name)
            if (now := _state()) != before:
                what = ", ".join(key for key in now if now[key] != before[key])
                raise Unfit(f"{name} changes {what} while it is imported", name)
    if why := generators.problem():
        raise Unfit(why)
    stored_paths = [StoredPaths(name) for name in cwd_readers]
    for name, paths in zip(cwd_readers, stored_paths, strict=True):
        if not paths:
            raise Unfit(f"{name} asks for the working directory while it is imported", name)
    return stored_paths


def _state() -> dict[str, object]:
    """State of the whole process that a script expects to have its usual initial value."""
    mask = os.umask(0o022)
    os.umask(mask)
    return {
        "signal handlers": [signal.getsignal(number) for number in signal.valid_signals()],
        "the umask": mask,
        "limits": [resource.getrlimit(kind) for kind in range(RLIMIT_KINDS)],
        "hooks of the interpreter": (
            sys.excepthook,
            sys.displayhook,
            threading.excepthook,
            sys.unraisablehook,
        ),
        "tracing": (sys.gettrace(), sys.getprofile()),
        "standard streams": (id(sys.stdin), id(sys.stdout), id(sys.stderr)),
        "arguments": list(sys.argv),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the recursion limit": sys.getrecursionlimit(),
        "garbage collection": (gc.isenabled(), gc.get_threshold()),
        "the root logger": (logging.root.level, list(logging.root.handlers), list(logging.root.filters)),
    }


@contextlib.contextmanager
def _record_variable_reads(names: frozenset[str]) -> Iterator[list[str]]:
    """Record who reads variables that differ for each run."""
    variables_read: list[str] = []
    environ: Any = type(os.environ)
    get = environ.__getitem__

    def getitem(self: Any, key: Any) -> Any:
        if key in names:
            variables_read.append(key)
        return get(self, key)

    environ.__getitem__ = getitem
    try:
        yield variables_read
    finally:
        environ.__getitem__ = get


def _threads() -> list[str]:
    return os.listdir("/proc/self/task")


def _descriptors() -> list[str]:
    """Open files, except the descriptor that lists them."""
    descriptors = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            descriptors.append(f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}")
    return descriptors


def _probe() -> None:
    """Fork, and check that what is loaded works there: a thread pool unaware of the fork would hang."""
    pid = os.fork()
    if pid == 0:
        _run_test_computation()
    watched = os.pidfd_open(pid)
    ended, _, _ = select.select([watched], [], [], PROBE_S)
    os.close(watched)
    if not ended:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if status:
        raise Unfit("a fork failed a test computation with the loaded packages")
    # Pools that handle forks have ended their threads at the first one.
    if len(_threads()) > 1:
        raise Unfit("the loaded packages have threads that a fork would lack")


def _run_test_computation() -> NoReturn:
    code = 1
    try:
        process_title.set_title(["python"], os.environ)
        if "numpy" in sys.modules:
            numpy = sys.modules["numpy"]
            square = numpy.ones((512, 512))
            numpy.linalg.solve(square @ square + numpy.eye(512), square)
        if "torch" in sys.modules:
            torch = sys.modules["torch"]
            ones = torch.ones(512, 512, requires_grad=True)
            (ones @ ones).sum().backward()
            torch.ones(1 << 20).sum()
        code = 0
    finally:
        os._exit(code)

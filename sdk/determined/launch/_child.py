"""A child process that receives its parent's signals and passes its exit code on."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Protocol, TypeVar

PASSED_ON = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGBREAK")
    if hasattr(signal, name)
]
NOT_FOUND = 127
NOT_EXECUTABLE = 126
_PR_SET_PDEATHSIG = 1


def run(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a command to completion and return its exit code in shell convention."""
    try:
        child = start(argv, environment)
    except OSError as error:
        return not_started(argv, error)
    return code_of(child.wait())


class Process(Protocol):
    """The interface required of a child process."""

    @property
    def pid(self) -> int:
        """The process id."""

    def poll(self) -> int | None:
        """Return the exit code as in `Popen.returncode`, or None while it runs."""

    def wait(self) -> int:
        """Wait for the process and return its exit code."""

    def send_signal(self, number: int, /) -> None:
        """Send a signal if the process is still running."""


P = TypeVar("P", bound=Process)


def start(
    argv: Sequence[str],
    environment: Mapping[str, str] | None = None,
    output: tuple[int | None, int | None] = (None, None),
) -> subprocess.Popen[bytes]:
    """Start a command that dies with this process. Signals received here are forwarded to it."""
    return passing_on(lambda: spawned(argv, environment, output))


def passing_on(begin: Callable[[], P], on_signal: Callable[[int], None] = lambda number: None) -> P:
    """Start a process with `begin` and forward received signals to it, including early ones.

    Args:
        begin: Starts the process.
        on_signal: Called with each signal before it is forwarded.
    """
    early: list[int] = []
    # A signal that comes before the child exists would end this process by its default action.
    for number in PASSED_ON:
        signal.signal(number, lambda number, _frame: early.append(number))
    child = begin()

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child.poll() is None:
            on_signal(number)
            child.send_signal(number)

    # Only now: handlers that forward need a child, and what arrived until here is forwarded next.
    for number in PASSED_ON:
        signal.signal(number, pass_on)
    for number in early:
        pass_on(number, None)
    return child


def spawned(
    argv: Sequence[str],
    environment: Mapping[str, str] | None,
    output: tuple[int | None, int | None],
) -> subprocess.Popen[bytes]:
    """Start a command that dies with this process."""
    child = subprocess.Popen(
        list(argv),
        env=None if environment is None else dict(environment),
        stdout=output[0],
        stderr=output[1],
        preexec_fn=_dies_with(os.getpid()),
    )
    _watch(child)
    return child


def watched(pid: int) -> int | None:
    """Return a file descriptor that becomes readable when a process ends; None where that is not possible."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        # An older kernel, a sandbox that forbids it, or a process that is gone.
        return None


def not_started(argv: Sequence[str], error: OSError) -> int:
    """Print why a command could not be started. Returns the exit code that a shell would use."""
    hint = ""
    if argv[0].endswith(".py"):
        hint = f" (a launcher takes a command: write python3 {argv[0]})"
    print(f"{argv[0]}: {error.strerror or error}{hint}", file=sys.stderr, flush=True)
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def code_of(returncode: int) -> int:
    """Convert a `Popen.returncode` to shell convention: 128 + n for death by signal n."""
    # 128 + n is how shells and schedulers write it; Python's -n would become another code at `sys.exit`.
    return 128 - returncode if returncode < 0 else returncode


def ending(code: int) -> str:
    """Describe an exit code."""
    if code > 128:
        try:
            return f"was ended by {signal.Signals(code - 128).name}"
        except ValueError:
            pass
    return f"exited with code {code}"


def _dies_with(parent: int) -> Any:
    """Return a function for the child to run before exec, asking the kernel to kill it with its parent."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the kernel was asked.
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return ask


def _watch(child: subprocess.Popen[bytes]) -> None:
    """On systems without kernel support, fork a process that kills the child when this one exits."""
    if sys.platform.startswith("linux") or not hasattr(os, "fork"):
        return
    ours, parent_end = os.pipe()
    if os.fork() == 0:
        os.close(parent_end)
        # The pipe ends when this process does, whatever kills it, and wakes the forked one.
        os.read(ours, 1)
        try:
            os.kill(child.pid, signal.SIGKILL)
        finally:
            os._exit(0)
    os.close(ours)

"""The command of a run: starts it, finds everything it started, and ends it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from functools import cache

from services.kit.host_processes import children, descendants, send, unread_status
from worker.shim.control_group import ControlGroups
from worker.shim.lines import LineSplitter
from worker.shim.pace import LINE_BYTES
from worker.shim.small_files import read_file, write_file
from worker.shim.spool import STDERR, STDOUT, Spool

TYPE_CHECKING = False
if TYPE_CHECKING:  # Importing `typing` would take a tenth of the start time.
    from collections.abc import Callable
    from typing import Any, NoReturn

TERM_GRACE_S = 3.0
GIVE_UP_S = 5.0
CHASE_S = 0.04
"""How long one step pursues processes that multiply; the shim's other work waits for it."""
READ_BYTES = 64 * 1024
PIPE_BYTES = 1024 * 1024
F_SETPIPE_SZ = 1031
ALL_IN_USE = " (its account has as many processes as it may: STEADFAST_WORKER_PROCESSES of the worker)"
CANNOT_LIMIT = "the task could not be given the limits of this worker"
OOM_SCORE = 500
"""What is added to the score by which the kernel chooses whom to end: as if half of the memory were used."""
PR_SET_CHILD_SUBREAPER = 36


class CannotStart(Exception):
    """The command does not exist or may not be run; the text is for the user."""


class EnteredCommand(BaseException):
    """Raised in the child: it is the command's process from here on and must run no more shim code."""

    def __init__(self, main: Any) -> None:
        self.main = main


class Command:
    """A started command. All its descendants are found, even those that leave its group or session."""

    def __init__(
        self,
        argv: list[str],
        cwd: str,
        env: dict[str, str],
        run_as: dict[str, Any] | None = None,
        become: Callable[..., NoReturn] | None = None,
        groups: ControlGroups | None = None,
    ) -> None:
        """`become` turns the child into the command and raises `EnteredCommand` in it. The default executes
        it."""
        self._groups = groups or ControlGroups([])
        self.status: int | None = None
        """As returned by waitpid; None while the command runs."""
        self.left_over = 0
        """How many processes still existed when the command had ended."""
        self.escaped = False
        """Whether some of them could not be ended."""
        self.outputs: dict[int, tuple[int, LineSplitter]] = {}
        """Pipe ends that may still deliver output, each with its stream and line splitter."""
        self._terminated: set[int] = set()
        self._kill_at: float | None = None
        self.killed = False
        """Whether everything was killed on request."""
        self._is_subreaper = _become_subreaper()
        self._change_user = _change_user(run_as)
        self.pid = self._spawn(argv, cwd, env, become or _become)

    def _spawn(self, argv: list[str], cwd: str, env: dict[str, str], become: Callable[..., NoReturn]) -> int:
        out, err, error_pipe = os.pipe(), os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            _be_first_to_go()
            self._enter_groups(error_pipe[1])
            become(argv, cwd, env, out[1], err[1], error_pipe[1], self._change_user)
        for _, write in (out, err, error_pipe):
            os.close(write)
        for stream, read in ((STDOUT, out[0]), (STDERR, err[0])):
            os.set_blocking(read, False)
            _enlarge_pipe(read)
            self.outputs[read] = (stream, LineSplitter())
        with open(error_pipe[0], "rb") as answer:
            failure = answer.read()
        if failure:
            os.waitpid(pid, 0)
            raise CannotStart(failure.decode("utf-8", "replace"))
        return pid

    def _enter_groups(self, error_fd: int) -> None:
        """In the child: be limited from here on, or report why that failed."""
        try:
            self._groups.enter()
        except OSError as error:
            os.write(error_fd, f"{CANNOT_LIMIT}: {error}".encode())
            os._exit(127)

    def pump(self, fd: int, spool: Spool) -> int:
        """Move available output from a pipe to the spool, and close the pipe at its end.

        Returns what that output costs on its way to the log, in bytes.
        """
        stream, lines = self.outputs[fd]
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._close(fd, spool)
            return 0
        records = lines.feed(data)
        if records:
            spool.append(stream, records)
        return len(data) + LINE_BYTES * len(records)

    def finish_output(self, spool: Spool) -> None:
        """Stop waiting for the end of the output."""
        for fd in list(self.outputs):
            self._close(fd, spool)

    def _close(self, fd: int, spool: Spool) -> None:
        stream, lines = self.outputs.pop(fd)
        records = lines.finish()
        if records:
            spool.append(stream, records)
        os.close(fd)

    def forward(self, number: int) -> None:
        """Forward a signal to the command only."""
        if self.status is None:
            send({self.pid}, number)

    def kill(self) -> None:
        """Kill the command and everything it started, without a grace period."""
        self.killed, self._kill_at = True, time.monotonic()
        self._groups.forbid_processes()
        send(self._live_pids(), signal.SIGKILL)

    def reap(self) -> bool:
        """Reap ended children. Returns whether any children are left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.pid:
                    self.status = status
        except ChildProcessError:
            return False

    def end_if_held(self) -> None:
        """Take the status of a command that has ended, but is kept from this process by one that traces it.

        The kernel tells a debugger first. One in another run of the same user could otherwise hold this run.
        """
        status = unread_status(self.pid)
        # Again after the look: it may have ended since the signal that was handled last.
        self.reap()
        if self.status is None:
            self.status = status

    def clean_up(self) -> bool:
        """One step of ending what the command left behind.

        Returns True once nothing is left, or on giving up.
        """
        if not self.reap() and self._is_subreaper:
            return True
        left, now = self._live_pids(), time.monotonic()
        # Without adoption, an empty list means that nothing is left. With adoption, reap() has just reported
        # children, so an empty list only means that one was being re-parented.
        if not left and not self._is_subreaper:
            return True
        self.left_over = max(self.left_over, len(left))
        if self._kill_at is None:
            self._kill_at = now + TERM_GRACE_S
        if now < self._kill_at:
            send(left - self._terminated, signal.SIGTERM)
            self._terminated |= left
            return False
        self._chase(left)
        gives_up = now >= self._kill_at + GIVE_UP_S
        # Some kernels list no children. What is listed, has ended and cannot be waited for, a debugger holds.
        held = [unread_status(pid) is not None for pid in children()]
        self.escaped = gives_up and not (held and all(held))
        return gives_up

    def _chase(self, left: set[int]) -> None:
        """Kill processes that may multiply faster than they can be listed.

        Stopped ones cannot fork while the others are looked for. One whose parent ends at once is gone before
        a list of all processes is complete, but it becomes a child of the shim, and those are listed quickly.
        """
        self._groups.forbid_processes()
        send(left, signal.SIGSTOP)
        send(left | self._live_pids(), signal.SIGKILL)
        until = time.monotonic() + CHASE_S
        while self.reap() and time.monotonic() < until:
            fresh = children() - left
            send(fresh, signal.SIGKILL)
            left |= fresh
            if not fresh:
                time.sleep(0.001)

    def _live_pids(self) -> set[int]:
        return descendants(os.getpid(), session=self.pid) | self._groups.pids()


def _become(
    argv: list[str],
    cwd: str,
    env: dict[str, str],
    out: int,
    err: int,
    error_fd: int,
    change_user: Callable[..., None],
) -> NoReturn:
    """In the child: become the command, or report why that failed."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, name in ((null, 0), (out, 1), (err, 2)):
            os.dup2(fd, name)
        # Python ignores these two signals, and the command would inherit that.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        change_user(1, 2)
        os.chdir(cwd)
        os.execvpe(argv[0], argv, env)  # noqa: S606 - the task's command, which is the user's to choose
    except OSError as error:
        what = cwd if error.filename == cwd else argv[0]
        more = ALL_IN_USE if error.errno == errno.EAGAIN else ""
        os.write(error_fd, f"cannot start '{what}': {error.strerror}{more}".encode())
    except BaseException as error:
        os.write(error_fd, f"cannot start {argv}: {error!r}".encode())
    finally:
        os._exit(127)


def _be_first_to_go() -> None:
    """In the child: have the kernel end this task, and not the platform, where memory runs out.

    Everybody may raise this of themselves, and nobody but root may lower it again.
    """
    try:
        now = int(read_file("/proc/self/oom_score_adj"))
        write_file("/proc/self/oom_score_adj", str(min(max(now, now + OOM_SCORE), 1000)).encode())
    except (OSError, ValueError):
        return


def _change_user(run_as: dict[str, Any] | None) -> Callable[..., None]:
    """Return the function that makes the child the command's user; it does nothing if none is named."""
    if run_as is None:
        return lambda *_: None
    # Imported before the fork, and only if needed, because the shim must start fast.
    from worker.shim.run_as import RunAs

    return RunAs(**run_as).drop_rights


def _enlarge_pipe(pipe: int) -> None:
    """Enlarge a pipe so that a pause of the shim does not stall the training."""
    try:
        fcntl.fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return


def _become_subreaper() -> bool:
    """Become the parent of orphaned descendants, so that none escapes by starting its own session."""
    try:
        return bool(libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


@cache
def libc() -> Any:
    """The C library. A template loads it before it forks."""
    import ctypes

    return ctypes.CDLL(None)

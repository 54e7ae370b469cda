"""One run, from its specification to its exit record."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Callable

from services.kit.host_processes import started
from worker.shim.command import CANNOT_LIMIT, CannotStart, Command, EnteredCommand
from worker.shim.control_group import ControlGroups
from worker.shim.pace import Pace
from worker.shim.small_files import read_file, write_file
from worker.shim.spool import NOTICE, STDERR, Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from worker.shim.fence import Fence

FORWARDED_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
HANDLED_SIGNALS = (signal.SIGCHLD, signal.SIGQUIT, *FORWARDED_SIGNALS)
"""Signals that the shim handles. None of them is ignored in its script, whatever started the worker."""
PIPE_GRACE_S = 2.0
TICK_MS = 50
FENCE_TICK_MS = 500
"""How often a fence is checked. A longer system wait would not count the time that the host sleeps."""
EXIT_BYTES = 1024
START_S = 30.0
LOCK = "lock"
KILLED = 128 + signal.SIGKILL
ESCAPED = "processes of this run multiply faster than they could be ended, and may still run on this host"
OUT_OF_MEMORY = "the kernel ended a process of this run: the memory that it may use was all in use"
REFUSED = (
    "this run was refused {:,} further processes or threads: it had as many as it may "
    "(STEADFAST_WORKER_PROCESSES of the worker)"
)
FENCED = "ended: this host was out of touch with the cluster, and its pool has `on_lost: fence`"


class Shim:
    """Starts the command, watches it, and records how it ended."""

    def __init__(
        self, run_dir: str, become: Callable[..., NoReturn] | None = None, *, through_shell: bool = False
    ) -> None:
        """For `become` see `Command`.

        `through_shell`: the command replaces a shell that would have run it, so report what that shell would
        report.
        """
        self._dir = run_dir
        self._become = become
        self._through_shell = through_shell
        self._exit_path = os.path.join(run_dir, "exit.json")
        # Reserve space for the exit record now: the disk may be full at the end.
        write_file(self._exit_path + ".new", b" " * EXIT_BYTES)
        spool_dir = os.path.join(run_dir, "spool")
        os.makedirs(spool_dir, exist_ok=True)
        self._spool = Spool(spool_dir)
        self._pace = Pace()
        self._kills_before = memory_kills()
        self._wake = _wake_on_signals()
        self._command: Command | None = None
        self._groups = ControlGroups([])
        self._fence: Fence | None = None
        self._fenced = False
        self._container_error = ""
        """Why a container may still be running."""

    def run(self, ready: Callable[[], None]) -> None:
        """Run the command to its end. `ready` is called as soon as the worker may know of it."""
        spec = json.loads(read_file(os.path.join(self._dir, "spec.json")))
        self._spool.max_bytes = spec.get("output_bytes", 0)
        self._pace = Pace(spec.get("output_bytes_s", 0))
        if "fence" in spec:
            # Most runs have no fence, and the shim must start fast.
            from worker.shim.fence import Fence

            self._fence = Fence(**spec["fence"])
            if self._fence.has_expired():
                # The worker stood still since it decided to start this, and the run may be elsewhere by now.
                self._spool.append(NOTICE, [FENCED.encode()])
                self._exit(code=KILLED, message=FENCED, lost=True)
                ready()
                return
        try:
            command = self._command = self._start(spec)
        except CannotStart as failure:
            self._groups.remove()
            self._spool.append(NOTICE, [str(failure).encode()])
            self._exit(code=127, message=str(failure))
            ready()
            return
        # Before `ready`: a worker that is killed just now finds the run again only by this file.
        self._record_running(command.pid)
        ready()
        self._watch(command, spec.get("end"))
        self._report(command)

    def _start(self, spec: dict[str, Any]) -> Command:
        """Start the command within its limits. Raises `CannotStart`."""
        self._groups = ControlGroups(spec.get("groups", []))
        try:
            self._groups.make()
        except OSError as error:
            raise CannotStart(f"{CANNOT_LIMIT}: {error}") from error
        run_as = spec.get("run_as")
        return Command(spec["argv"], spec["cwd"], spec["env"], run_as, self._become, self._groups)

    def abandon(self) -> None:
        """End the command because the shim itself failed."""
        if self._command is not None:
            self._command.kill()
        self._exit(code=1, message=f"the shim failed: see {os.path.join(self._dir, 'shim.log')}")

    def _record_running(self, command_pid: int) -> None:
        ids = {"shim": os.getpid(), "command": command_pid}
        path = os.path.join(self._dir, "running.json")
        times = {name: {"pid": pid, "started": started(pid) or 0} for name, pid in ids.items()}
        write_file(path + ".new", json.dumps(times).encode())
        os.rename(path + ".new", path)

    def _watch(self, command: Command, end: dict[str, Any] | None) -> None:
        give_up_at: float | None = None
        while True:
            self._check_fence(command)
            # What has ended is read to its end.
            pause_s = 0.0 if command.status is not None else self._pace.pause_s()
            for fd in self._readable(command, pause_s):
                if fd == self._wake:
                    self._handle_signals(command)
                else:
                    self._pace.spend(command.pump(fd, self._spool))
            if command.killed and command.status is None:
                command.end_if_held()
            if command.status is None:
                continue
            if end is not None:
                # First, because what the engine left in our process tree ends with the container.
                self._container_error, end = _end_container(end), None
            if give_up_at is None and command.clean_up():
                give_up_at = time.monotonic() + PIPE_GRACE_S
            # A process that escaped may hold the output open for ever.
            if give_up_at is not None and (not command.outputs or time.monotonic() > give_up_at):
                command.finish_output(self._spool)
                return

    def _readable(self, command: Command, pause_s: float) -> list[int]:
        """Wait until signals or output have come, or something is due. Output is not read during a pause."""
        poll = select.poll()
        for fd in (self._wake, *(() if pause_s else command.outputs)):
            poll.register(fd, select.POLLIN)
        waits = [TICK_MS] if command.killed or command.status is not None else []
        waits += [FENCE_TICK_MS] if self._fence is not None else []
        waits += [int(pause_s * 1000) + 1] if pause_s else []
        return [fd for fd, _ in poll.poll(min(waits, default=None))]

    def _check_fence(self, command: Command) -> None:
        if self._fence is not None and self._fence.has_expired():
            self._fenced = self._fenced or command.status is None
            command.kill()

    def _handle_signals(self, command: Command) -> None:
        for number in os.read(self._wake, 4096):
            if number == signal.SIGCHLD:
                command.reap()
            elif number == signal.SIGQUIT:
                command.kill()
            else:
                command.forward(number)

    def _report(self, command: Command) -> None:
        if self._through_shell and not command.killed:
            command.status = self._status_as_dash(command.status or 0)
        if command.left_over:
            text = f"ended {command.left_over} process(es) that the command had left behind"
            self._spool.append(NOTICE, [text.encode()])
        if command.escaped:
            self._spool.append(NOTICE, [ESCAPED.encode()])
        code = os.waitstatus_to_exitcode(command.status or 0)
        message = FENCED if self._fenced else self._container_error
        if not message and code and not command.killed:
            message = self._ended_for_memory(code)
        if refused := self._groups.refused_processes():
            self._spool.append(NOTICE, [REFUSED.format(refused).encode()])
        if message:
            self._spool.append(NOTICE, [message.encode()])
        self._groups.remove()
        self._spool.close()
        self._exit(
            code=128 - code if code < 0 else code,
            signal=-code if code < 0 else None,
            left_over=command.left_over,
            lost_lines=self._spool.lost_lines,
            lost=self._fenced,
            message=message,
        )

    def _ended_for_memory(self, code: int) -> str:
        """What to say of a failure if the kernel has ended processes because memory ran out; "" if not.

        Its own group counts only what happened to this run, so that whatever the command made of the end of
        a child, such as a loader of data, is explained by it. The host's count may be due to others.
        """
        limits = f" ({self._groups.limits})" if self._groups.limits else ""
        kills = self._groups.memory_kills()
        if kills is None:
            was_killed = code in (-signal.SIGKILL, KILLED)
            kills = was_killed and memory_kills() > self._kills_before
        return OUT_OF_MEMORY + limits if kills else ""

    def _status_as_dash(self, status: int) -> int:
        """The exit status of a dash whose only command ended with this status.

        Prints dash's message about signals.
        """
        if not os.WIFSIGNALED(status):
            return status
        number = os.WTERMSIG(status)
        if number not in (signal.SIGINT, signal.SIGPIPE):
            core = " (core dumped)" if os.WCOREDUMP(status) else ""
            self._spool.append(STDERR, [f"{signal.strsignal(number)}{core}".encode()])
        return (128 + number) << 8

    def _exit(self, **record: object) -> None:
        """Write the exit record into its reserved space; retries until it succeeds or the folder is gone."""
        record["message"] = str(record.get("message", ""))[: EXIT_BYTES // 8]
        # Padded to the reserved size, so that writing needs no further disk space.
        text = json.dumps({**record, "at": time.time()}).encode().ljust(EXIT_BYTES)
        while True:
            try:
                file = os.open(self._exit_path + ".new", os.O_WRONLY | os.O_CREAT, 0o600)
                try:
                    os.write(file, text)
                finally:
                    os.close(file)
                os.rename(self._exit_path + ".new", self._exit_path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(1.0)


def _end_container(end_of_run: dict[str, Any]) -> str:
    """Make sure that nothing of the run is left with a container engine. Returns the error, or ""."""
    # Most runs have no container, and the shim must start fast.
    from worker.shim.engine import end_container

    return end_container(**end_of_run)


def memory_kills() -> int:
    """How many processes the kernel of this host has ended because memory ran out."""
    try:
        return int(read_file("/proc/vmstat").partition(b"\noom_kill ")[2].split(maxsplit=1)[0])
    except (OSError, IndexError, ValueError):
        return 0


def main(run_dir: str) -> int:
    """Run what `RUN_DIR/spec.json` says, once. Further calls for the same directory do nothing."""
    if not claim(run_dir):
        return 0 if _has_started(run_dir) else 1
    run_shim(run_dir, _detach(run_dir))
    return 0


def run_shim(
    run_dir: str,
    ready: Callable[[], None],
    become: Callable[..., NoReturn] | None = None,
    *,
    through_shell: bool = False,
) -> None:
    """Act as the shim of a run that this process has claimed; see `Shim`."""
    shim = Shim(run_dir, become, through_shell=through_shell)
    try:
        shim.run(ready)
    except EnteredCommand:
        raise
    except BaseException:
        shim.abandon()
        raise


def _has_started(run_dir: str) -> bool:
    return any(os.path.exists(os.path.join(run_dir, name)) for name in ("running.json", "exit.json"))


def claim(run_dir: str) -> bool:
    """Take the run's lock until this process ends. Returns False if another shim has started the run."""
    # Never closed: the kernel releases the lock when this process ends, however it ends.
    lock = os.open(os.path.join(run_dir, LOCK), os.O_WRONLY | os.O_CREAT, 0o600)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return not _has_started(run_dir)
        except BlockingIOError:
            if _has_started(run_dir):
                return False
            time.sleep(0.01)
    return False


def _wake_on_signals() -> int:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    # Signals become bytes in a pipe, which `poll` sees along with output. A handler could interrupt anything.
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in HANDLED_SIGNALS:
        signal.signal(number, lambda *_: None)
    return read


def _detach(run_dir: str) -> Callable[[], None]:
    """Continue in a new session. The calling process waits for one byte and exits with it."""
    ready_read, ready_write = os.pipe()
    if os.fork():
        os.close(ready_write)
        os._exit(0 if os.read(ready_read, 1) or _has_started(run_dir) else 1)
    os.close(ready_read)
    start_session(run_dir)

    def ready() -> None:
        # A worker that was killed in the meantime does not read this and finds the run by its files.
        with contextlib.suppress(BrokenPipeError):
            os.write(ready_write, b"+")
        os.close(ready_write)

    return ready


def start_session(run_dir: str) -> None:
    """Start a new session for this process, with the shim's log as its only stream."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(os.path.join(run_dir, "shim.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # The worker's pipes would otherwise stay open, and the worker would wait for their end.
    for fd, name in ((null, 0), (null, 1), (log, 2)):
        os.dup2(fd, name)

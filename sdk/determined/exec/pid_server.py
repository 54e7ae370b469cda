"""Runs a command whose workers are not its children, and ends it if one of them fails.

    python3 -m determined.exec.pid_server [--on-fail SIG|WAIT] [--on-exit SIG|WAIT] [--grace-period 3]
        [--signal-children] ADDR N CMD [ARG...]

Each of N workers runs under `determined.exec.pid_client ADDR`, which sends its process id, and `q` after a
successful exit. If the command itself returns 0, the exit code is: 77 if it ended before all workers had sent
`q`; 78 if it was signalled because of a failed worker; 79 if a worker failed and the command ended by itself
or had to be killed. A command that the signal of `--on-exit` has ended counts as having returned 0.

If ADDR is a path and the workers run under `determined.launch.wrap_rank`, the last line names the one that
failed first. Launchers such as DeepSpeed's only see process ids.
Source: launchers spec, section 8.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from determined.exec import _pids
from determined.launch import _child, _ends, _grammar

TICK_S = 1.0
KILL_AFTER_S = 10.0
UNFINISHED, SIGNALLED, FAILED = 77, 78, 79


class Workers:
    """The workers that have reported, keyed by connection."""

    def __init__(self, server: socket.socket, expected: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)
        self._server = server
        self._expected = expected
        self._received: dict[socket.socket, bytes] = {}
        self._pids: dict[socket.socket, int] = {}
        self._done = 0
        self._failed = False

    @property
    def done(self) -> bool:
        """Whether all workers have succeeded."""
        return self._done >= self._expected

    def failed(self) -> bool:
        """Whether a worker is gone without success. Checks the processes."""
        self._failed = self._failed or any(not _pids.is_running(pid) for pid in self._pids.values())
        return self._failed

    def listen(self, seconds: float) -> None:
        """Process messages from the workers, for at most this many seconds."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._server:
                connection, _address = self._server.accept()
                self._received[connection] = b""
                self._selector.register(connection, selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                self._hear(key.fileobj)

    def _hear(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(4096)
        except OSError:
            data = b""
        self._received[connection] += data
        # Several reads may bring the parts of one line, and one read the number and the "q" after it.
        line, newline, rest = self._received[connection].partition(b"\n")
        if newline and connection not in self._pids and line.isdigit():
            self._pids[connection] = int(line)
        if newline and b"q" in rest:
            self._done += 1
            self._leave(connection)
        # A worker that ends without saying "q" has failed, also if its exit code was 0.
        elif not data:
            self._failed = True
            self._leave(connection)

    def _leave(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        self._received.pop(connection, None)
        self._pids.pop(connection, None)
        connection.close()


class Supervisor:
    """A command and its workers."""

    def __init__(
        self, child: subprocess.Popen[bytes], workers: Workers, grace_s: float, signal_children: bool
    ) -> None:
        self._child = child
        self._workers = workers
        self._grace_s = grace_s
        self._signal_children = signal_children

    def run(self, on_fail: signal.Signals | None, on_exit: signal.Signals | None) -> int:
        """Supervise until the end. Returns the exit code."""
        self._until(lambda: self._workers.done or self._workers.failed())
        if self._workers.done:
            return self._code_after_success(on_exit)
        if not self._workers.failed():
            return self._code(UNFINISHED)
        if on_fail is None:
            return self._code(FAILED)
        return self._code(FAILED if self._end(on_fail) else SIGNALLED)

    def _code_after_success(self, on_exit: signal.Signals | None) -> int:
        if on_exit is not None:
            self._end(on_exit)
        code = self._code(0)
        # On a busy host a launcher may need longer than the grace period to notice that its workers have
        # ended. To be ended by our signal is no failure then.
        return 0 if on_exit is not None and code == 128 + on_exit else code

    def _end(self, number: signal.Signals) -> bool:
        """Signal the command after the grace period. Returns whether it had to be killed."""
        if self._until(bool, self._grace_s):
            return False
        if self._signal_children:
            for pid in _pids.descendants(self._child.pid):
                _send(pid, number)
        self._child.send_signal(number)
        if self._until(bool, KILL_AFTER_S):
            return False
        # A launcher that is killed does not end its workers.
        for pid in [*_pids.descendants(self._child.pid), self._child.pid]:
            _send(pid, signal.SIGKILL)
        return True

    def _until(self, reached: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait for the command to end (returns True), the condition to hold, or the time to run out."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._child.poll() is None:
            if reached() or (deadline is not None and time.monotonic() >= deadline):
                return False
            # A short tick while a deadline runs, since a launcher that ends at once should not cost a second.
            self._workers.listen(TICK_S if deadline is None else 0.1)
        return True

    def _code(self, instead_of_0: int) -> int:
        return _child.code_of(self._child.wait()) or instead_of_0


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    options = _arguments(sys.argv[1:] if args is None else args)
    try:
        on_fail, on_exit = _pids.signal_named(options.on_fail), _pids.signal_named(options.on_exit)
        # Left over from a task that was killed: binding to the address would fail.
        _remove_files(options.address)
        if notes := _pids.notes_of(options.address):
            _ends.begin(notes)
        server = _pids.listen(options.address)
    except (ValueError, OSError) as error:
        print(f"pid_server: {error}", file=sys.stderr)
        return 1
    with contextlib.closing(server):
        try:
            child = _child.start(options.command)
        except OSError as error:
            return _child.not_started(options.command, error)
        workers = Workers(server, options.workers)
        supervisor = Supervisor(child, workers, options.grace_period, options.signal_children)
        try:
            code = supervisor.run(on_fail, on_exit)
            if code:
                _name_first(options.address)
            return code
        finally:
            _remove_files(options.address)


def _name_first(address: str) -> None:
    notes = _pids.notes_of(address)
    cause = None if notes is None else _ends.first_cause(notes)
    if cause is not None:
        print(f"rank {cause[0]} {_child.ending(cause[1])}", file=sys.stderr, flush=True)


def _remove_files(address: str) -> None:
    notes = _pids.notes_of(address)
    if notes is not None:
        Path(address).unlink(missing_ok=True)
        notes.unlink(missing_ok=True)


def _arguments(args: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pid_server", description="run a command and watch its workers")
    parser.add_argument("--on-fail", default="SIGTERM", help="a signal, or WAIT (default: SIGTERM)")
    parser.add_argument("--on-exit", default="WAIT", help="a signal, or WAIT (default: WAIT)")
    parser.add_argument("--grace-period", type=float, default=3.0, help="seconds before the signal")
    parser.add_argument("--signal-children", action="store_true", help="signal all descendants too")
    parser.add_argument("address", help="a path with a slash, host:port, or a port")
    parser.add_argument("workers", type=int, help="number of workers that will report")
    # Options after the positional arguments belong to the command, which argparse would take for its own.
    own, command = split(args, ("--on-fail", "--on-exit", "--grace-period"), positional=2)
    options = parser.parse_args(own)
    if not command:
        parser.error("no command was given")
    options.command = command
    return options


def split(args: Sequence[str], valued: Sequence[str] = (), *, positional: int) -> tuple[list[str], list[str]]:
    """Split own arguments from the command after the positional ones, whose options and `--` belong to it."""
    words, at, left = list(args), 0, positional
    while at < len(words) and left:
        if words[at] in valued:
            at += 1
        elif not words[at].startswith("-"):
            left -= 1
        at += 1
    return words[:at], _grammar.without_separator(words[at:])


if __name__ == "__main__":
    sys.exit(main())

"""Prefixes every line a process prints with its rank (launchers spec, section 8).

    python3 -m determined.launch.wrap_rank [--no-redirect-stdio] RANK [--] CMD [ARG...]

RANK is a number, or a comma-separated list of variables of which the first one set is used. Lines are written
whole and immediately, so those of different ranks do not mix.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from determined import _absent
from determined.launch import _child, _ends, _grammar, _ranks
from determined.launch._node import stop

__path__: list[str] = []
_absent.explain_in(__name__)

USAGE = "usage: wrap_rank [--no-redirect-stdio] RANK [--] CMD [ARG...]"
NODE_STREAMS = Path("/run/determined/train/logs")
"""In a container: links to the output of the node's first process, which mpirun and ssh do not forward."""
SILENCE_S = 1.0
"""Seconds after which an unfinished line, such as a prompt, is passed on."""
STRAGGLERS_S = 2.0
"""Seconds to wait for leftover processes that may hold the pipe open."""
TOLD_TO_END_S = 8.0
"""Seconds for a command to end after our launchers' SIGTERM, which follows the failure of another rank.

Then it is killed. The launchers would wait up to 30 s for one that does not listen, as one that is stuck in a
collective cannot.
"""
MAX_LINE_BYTES = 1 << 20
"""Longer lines are passed on in pieces."""
_CHUNK = 1 << 16


def main(args: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code."""
    words = list(sys.argv[1:] if args is None else args)
    redirect = True
    while words and words[0] in ("--no-redirect-stdio", *_grammar.HELP):
        if words.pop(0) != "--no-redirect-stdio":
            print(USAGE)
            return 0
        redirect = False
    command = _grammar.without_separator(words[1:])
    if not command:
        stop(USAGE, code=2)
    return relay(rank_of(words[0], os.environ), command, redirect)


def rank_of(argument: str, environment: Mapping[str, str]) -> int:
    """Return the rank an argument stands for. Exits if there is none."""
    if argument.isdigit():
        return int(argument)
    names = argument.split(",")
    ranks = [environment[name] for name in names if name in environment]
    if not ranks:
        stop(f"rank environment variable is set to {argument}, but it is not in os.environ")
    if not ranks[0].isdigit():
        stop(f"the rank in {argument} is {ranks[0]!r}, not a number")
    return int(ranks[0])


class _Stream:
    """One of the two output streams of a command."""

    def __init__(self, source: IO[bytes], target: int, prefix: bytes) -> None:
        self.source = source
        self._target = target
        self._prefix = prefix
        self._rest = b""

    def read(self) -> bool:
        """Pass on the complete lines received. Returns False at the end of the stream."""
        data = os.read(self.source.fileno(), _CHUNK)
        # Progress bars end their lines with a carriage return. Each state becomes a line.
        lines = (self._rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        self._write(lines)
        if len(self._rest) > MAX_LINE_BYTES:
            self.finish()
        return bool(data)

    def finish(self) -> None:
        """Pass on a partial line as a line."""
        if self._rest:
            self._write([self._rest])
            self._rest = b""

    def _write(self, lines: list[bytes]) -> None:
        # Where possible in one write, so that lines of other ranks do not get in between.
        data = b"".join(self._prefix + line + b"\n" for line in lines)
        while data:
            # A pipe may take only a part.
            data = data[os.write(self._target, data) :]


def relay(rank: int, command: Sequence[str], redirect: bool = True) -> int:
    """Run a command with its output prefixed. Returns its exit code."""
    targets = _targets(redirect)
    # Removed, so that a launcher inside the script does not write to them.
    notes = os.environ.pop(_ends.FILE, "")

    def on_signal(number: int) -> None:
        if number == signal.SIGTERM:
            _ends.note(notes, rank, _ends.TOLD_TO_END)
            if notes:
                signal.setitimer(signal.ITIMER_REAL, TOLD_TO_END_S)

    pipes = [os.pipe(), os.pipe()]
    output = pipes[0][1], pipes[1][1]
    try:
        child = _child.passing_on(lambda: _begun(command, output), on_signal)
    except OSError as error:
        return _child.not_started(command, error)
    finally:
        # While this process holds the writing ends, the end of the output would not be seen.
        for _, pipe in pipes:
            os.close(pipe)
    signal.signal(signal.SIGALRM, lambda _number, _frame: child.send_signal(signal.SIGKILL))
    prefix = b"[rank=%d] " % rank
    streams = [
        _Stream(os.fdopen(ours, "rb", buffering=0), target, prefix)
        for (ours, _), target in zip(pipes, targets, strict=True)
    ]
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream.source, selectors.EVENT_READ, stream)
        watched = _child.watched(child.pid)
        if watched is not None:
            selector.register(watched, selectors.EVENT_READ)
        over, ended = False, None
        while selector.get_map():
            if ended is None and (over or child.poll() is not None):
                ended = time.monotonic()
                _ends.note(notes, rank, _child.code_of(child.wait()))
            if ended is not None and time.monotonic() - ended > STRAGGLERS_S:
                break
            over = _pass_on(selector, streams) or over
    for stream in streams:
        stream.finish()
        stream.source.close()
    code = _child.code_of(child.wait())
    if ended is None:
        _ends.note(notes, rank, code)
    return code


def _begun(command: Sequence[str], output: tuple[int, int]) -> _child.Process:
    return _ranks.start(command, output) or _child.spawned(command, None, output)


def _pass_on(selector: selectors.BaseSelector, streams: list[_Stream]) -> bool:
    """Pass on what comes next. Returns whether the process has ended; what it started may still write."""
    over = False
    ready = selector.select(timeout=SILENCE_S)
    for key, _ in ready:
        if key.data is None:
            over = True
            selector.unregister(key.fileobj)
            os.close(key.fd)
        elif not key.data.read():
            selector.unregister(key.fileobj)
    if not ready:
        for stream in streams:
            stream.finish()
    return over


def _targets(redirect: bool) -> list[int]:
    paths = [NODE_STREAMS / "stdout.log", NODE_STREAMS / "stderr.log"]
    if redirect and all(path.exists() for path in paths):
        return [os.open(path, os.O_WRONLY | os.O_APPEND) for path in paths]
    return [sys.stdout.fileno(), sys.stderr.fileno()]


if __name__ == "__main__":
    sys.exit(main())

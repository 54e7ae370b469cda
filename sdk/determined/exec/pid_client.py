"""Runs one worker and reports it to `determined.exec.pid_server`.

    python3 -m determined.exec.pid_client ADDR [--] CMD [ARG...]

Source: launchers spec, section 8.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from determined.exec import _pids
from determined.exec.pid_server import split
from determined.launch import _child, _ends

USAGE = "usage: pid_client ADDR [--] CMD [ARG...]"
KEEP_ALIVE_S = 60.0


def main(args: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code."""
    own, command = split(sys.argv[1:] if args is None else args, positional=1)
    if own in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if len(own) != 1 or not command:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        server = _pids.connect(own[0])
    except (ValueError, OSError) as error:
        print(f"pid_client: no pid_server at {own[0]}: {error}", file=sys.stderr)
        return 1
    with server:
        server.sendall(b"%d\n" % os.getpid())
        try:
            child = _child.start(command, os.environ | _variables(own[0]))
        except OSError as error:
            return _child.not_started(command, error)
        while True:
            try:
                code = _child.code_of(child.wait(timeout=KEEP_ALIVE_S))
                break
            except subprocess.TimeoutExpired:
                server.sendall(b"k")
        if code == 0:
            server.sendall(b"q")
        return code


def _variables(address: str) -> dict[str, str]:
    notes = _pids.notes_of(address)
    return {} if notes is None else {_ends.FILE: str(notes)}


if __name__ == "__main__":
    sys.exit(main())

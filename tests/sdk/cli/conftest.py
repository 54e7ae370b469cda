"""Run `det` in this process, or as one of its own where pipes, terminals and signals matter."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import NamedTuple

import pytest

from determined.cli.cli import main
from determined.transport import log_stream


class Result(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def master(gateway, client_home, monkeypatch):
    """A fake gateway that `det` finds by itself."""
    monkeypatch.setenv("DET_MASTER", gateway.url)
    monkeypatch.setattr(log_stream, "_PAUSE_S", 0)
    return gateway


@pytest.fixture
def det(client_home, capsys):
    """`det(*words)` as a call; answers status, stdout and stderr."""

    def run(*words):
        try:
            main([str(word) for word in words])
            status = 0
        except SystemExit as left:
            status = left.code
        return Result(status, *capsys.readouterr())

    return run


@pytest.fixture
def start_det(client_home):
    """`start_det(*words, **popen_options)` as a process."""
    started = []

    def start(*words, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        command = [sys.executable, "-m", "determined.cli", *map(str, words)]
        started.append(subprocess.Popen(command, **options))
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def det_on_terminal(start_det, monkeypatch):
    """`det_on_terminal(*words, **options)` sees a terminal; answers status and all that was shown."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")

    def run(*words, **options):
        ours, theirs = pty.openpty()
        process = start_det(*words, stdout=theirs, stderr=theirs, **options)
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        os.close(ours)
        return process.wait(30), shown.decode()

    return run


def _read(descriptor):
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how a terminal ends on Linux
        return b""

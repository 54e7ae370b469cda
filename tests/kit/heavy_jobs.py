"""What `test_offload` has done in another process, which imports no more than this."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from det_contracts.problems import failed_precondition


def double(argument, *files):
    for file in files:
        os.pread(file, 1, 0)
    return {"value": argument["value"] * 2, "pid": os.getpid()}


def refuse(argument):
    raise failed_precondition(f"not for {argument}")


def fail(argument):
    raise KeyError(argument)


def contents(argument, file):
    return os.pread(file, 1 << 20, 0)[::-1]


def think(argument):
    while True:
        pass


def grow(argument):
    return len(bytearray(argument))


def die(argument):
    os.kill(os.getpid(), signal.SIGKILL)


def nap(argument):
    Path(argument).write_text(str(os.getpid()))
    time.sleep(3600)

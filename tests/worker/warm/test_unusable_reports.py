"""What a template leaves instead of a report is no error of the worker, which would end for it."""

import asyncio
import os
import socket
import subprocess

import pytest

from worker.warm import template
from worker.warm.template import NoTemplate, make
from worker.warm.warm_start import Key

OF_ANOTHER_PROCESS = b'{"pid": 1, "why": "", "culprit": "", "modules": [], "tops": []}'
"""As of one that a shell has started, which has ended since."""


@pytest.mark.parametrize("report", [b"\xff", b"[]", OF_ANOTHER_PROCESS], ids=["bytes", "a list", "ended"])
def test_a_template_without_a_report_that_can_be_used_is_none(monkeypatch, report):
    started = []

    def spawn(key, control, order):
        # Over all that is in the order, whose length stays.
        os.pwrite(order, report.ljust(os.fstat(order).st_size), 0)
        process = subprocess.Popen(
            ["true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with socket.socket(fileno=os.dup(control)) as line:
            line.send(b"+")
        return process

    monkeypatch.setattr(template, "_spawn", spawn)
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(NoTemplate, match="cannot be used"):
        asyncio.run(make(Key("ann", ("python3",), ()), ["DET_TRIAL_ID"], []))
    started[0].wait()
    assert len(os.listdir("/proc/self/fd")) == files

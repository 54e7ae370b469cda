"""The memory of a template is freed by the kernel, which takes its time. Nobody waits for it."""

import signal
import socket
import subprocess
import threading

import pytest

from worker.warm.template import Report, Template


class SlowToEnd(subprocess.Popen):
    """A process whose end takes until `may_end` is set, as that of a large one on a busy host."""

    may_end = threading.Event()

    def wait(self, timeout=None):
        assert threading.current_thread() is not threading.main_thread(), "the event loop waits"
        self.may_end.wait()
        return super().wait(timeout)


@pytest.mark.timeout(60)
def test_the_worker_goes_on_while_a_template_ends():
    """Its loop stood still for 0.75 s, which the watchdog of the long tier noticed."""
    process = SlowToEnd(["sleep", "600"], start_new_session=True)
    ours, theirs = socket.socketpair()
    with theirs:
        template = Template(process, ours, Report(process.pid, "", "", [], []))
        template.end()
        assert process.returncode is None
        SlowToEnd.may_end.set()
        template.wait_until_gone()
    assert process.returncode == -signal.SIGKILL

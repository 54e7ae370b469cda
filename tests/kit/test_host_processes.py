"""What is done to processes of this machine by their ids."""

import os
import signal

import pytest

from services.kit import host_processes


@pytest.mark.parametrize("refusal", [ProcessLookupError, PermissionError])
def test_one_process_that_cannot_be_signalled_keeps_it_from_no_other(monkeypatch, refusal):
    """A task's `sudo` has become another user's, and a worker of an ordinary user cannot reach it."""
    reached = set()

    def kill(pid, number):
        if pid == 101:
            raise refusal
        reached.add((pid, number))

    monkeypatch.setattr(os, "kill", kill)
    host_processes.send({100, 101, 102}, signal.SIGKILL)
    assert reached == {(100, signal.SIGKILL), (102, signal.SIGKILL)}

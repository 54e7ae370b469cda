"""The memory of a tree counts processes that do not carry its mark, such as templates."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from benchmarks.kit.cluster import mark
from benchmarks.kit.memory import MIB, tree_bytes
from services.kit import broker
from services.local.control import up
from services.local.home import Home, Plan
from services.local.preconditions import CannotStart

HOLDS = "held = bytearray(50 << 20); print('ready', flush=True); input()"
STARTS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDS!r}], env={{}})"


def test_what_a_process_has_started_counts_though_it_does_not_carry_the_mark():
    mark = f"tree-{os.getpid()}-{os.urandom(8).hex()}"
    assert tree_bytes(mark) == 0
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", STARTS], env={"MARK": mark}, **pipes) as process:
        assert process.stdout.readline() == b"ready\n"
        assert tree_bytes(mark) > 50 * MIB
        process.communicate(b"\n")
    assert tree_bytes(mark) == 0


def test_the_supervisor_of_a_cluster_carries_its_mark(tmp_path):
    home, environments = Home("bench", tmp_path), []

    def start(command, *, env, **_):
        environments.append(env)
        return SimpleNamespace(pid=os.getpid(), returncode=1, poll=lambda: 1, wait=lambda: 1)

    with broker.held_port() as door, pytest.raises(CannotStart):
        up(Plan(name="bench", port=broker.port_of(door)), home, start=start)
    assert [any(mark(home) in text for text in env.values()) for env in environments] == [True]
    # All others have the folder of the cluster on their command line.
    assert str(home.path).startswith(mark(home))

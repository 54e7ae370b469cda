"""The memory of a tree counts processes that do not carry its mark, such as templates."""

import os
import subprocess
import sys

from benchmarks.kit.memory import MIB, tree_bytes

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

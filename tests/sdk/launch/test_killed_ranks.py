"""A rank is killed at each step of a script, under each launcher: all ranks end soon, and the log names it.

Ranks that nobody starts with a launcher: `tests/sdk/core/test_ranks.py` and `test_ranks_by_hand.py`. Ranks on
a cluster: `tests/live/test_launchers.py`.
"""

import importlib.util
import os
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import patience
from tests.fixtures.ports import reserved_port
from tests.fixtures.tiers import others_in_full

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
SCRIPT = Path(__file__).with_name("dying_rank.py")
WITHIN_S = 15
"""Seconds until all have ended. By themselves, ranks wait 1,200 s for one that never comes."""
STEPS = {
    "core": (
        "before it joins", "once it has joined", "when it has an operation", "in step 2", "while it saves",
        "when all is trained",
    ),
    "trainer": (
        "before it joins", "once it has joined", "while it builds the model", "in step 2",
        "while it validates", "when it has saved", "when all is trained",
    ),
    "deaf": ("when nobody listens",),
}  # fmt: skip
SIZES = [(1, 0), (2, 0), (2, 1), (4, 0), (4, 3)]
IN_EVERY_TIER = [("core", 4, 3, "in step 2"), ("trainer", 2, 0, "in step 2")]


def cases(*kinds):
    return [(kind, *size, step) for kind in kinds for size in SIZES for step in STEPS[kind]]


@pytest.fixture
def killed(node, tmp_path, monkeypatch):
    """A function that runs a script whose victim kills itself; returns how it ended, and after how long."""
    for name in ("INTER_TRAIN_PROCESS_COMM_PORT_1", "INTER_TRAIN_PROCESS_COMM_PORT_2"):
        monkeypatch.setenv(name, str(reserved_port()))
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    # DeepSpeed's own command lies beside the interpreter, whose environment need not be active.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))

    def run(launcher, kind, count, victim, step):
        script = [sys.executable, SCRIPT, kind, victim, step, tmp_path]
        process = node((count,)).start(*map(str, script), launcher=launcher)
        try:
            _, err = process.communicate(timeout=500)
        finally:
            process.kill()
        died = float((tmp_path / "died").read_text())
        return process.returncode, err, time.monotonic() - died

    return run


def check(victim, code, err, took_s):
    assert code not in (0, None)
    assert err.splitlines()[-1] == f"rank {victim} was ended by SIGKILL", err
    assert took_s < WITHIN_S * patience(), err


@pytest.mark.parametrize(
    ("kind", "count", "victim", "step"), others_in_full(cases("core", "trainer", "deaf"), IN_EVERY_TIER)
)
def test_under_the_launcher_of_torch(killed, kind, count, victim, step):
    check(victim, *killed("torch_distributed", kind, count, victim, step))


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")
@pytest.mark.parametrize(("kind", "count", "victim", "step"), cases("core", "deaf"))
def test_under_the_launcher_of_deepspeed(killed, kind, count, victim, step):
    check(victim, *killed("deepspeed", kind, count, victim, step))

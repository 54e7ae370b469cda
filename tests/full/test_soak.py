"""Ten thousand seeds of the simulated cluster, on all cores: nothing goes wrong, and enough happens."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = 10_000


@pytest.mark.timeout(4 * 3600)
def test_nothing_goes_wrong_in_ten_thousand_seeds():
    command = [sys.executable, "-m", "tests.simulation", "--seeds", str(SEEDS)]
    # A session of its own: whatever ends this test, its processes end with it.
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as soak:
        try:
            output, _ = soak.communicate()
        finally:
            if soak.poll() is None:
                os.killpg(soak.pid, signal.SIGKILL)
    assert soak.returncode == 0, output
    assert f"{SEEDS} seeds, " in output
    assert "there was enough activity" in output

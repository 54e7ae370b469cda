"""Runs a program of a peer in its environment, in a folder of its own, and watches its memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kit.memory import Peak
from benchmarks.peers.answers import Answer
from benchmarks.peers.environments import Missing, interpreter

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 1200.0
SAY_NOTHING = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "WANDB_ERROR_REPORTING": "false",
    "DO_NOT_TRACK": "true",
}
"""Peers that report on their users are told not to."""


@dataclass(frozen=True)
class Program:
    """A measure of a peer."""

    title: str
    """Its peer, as people call it, and the way it is used: the beginning of its rows."""
    environment: str
    """Of `requirements/`; the interpreter of this process if empty."""
    module: str
    measure: str

    def python(self, install: bool) -> Path:
        """The interpreter that runs it. Raises `Missing`."""
        return interpreter(self.environment, install) if self.environment else Path(sys.executable)

    def run(self, count: int, install: bool) -> tuple[Answer, int]:
        """What it answers, and the peak memory of its process tree in bytes.

        Raises `Missing` if it cannot be run, or fails.
        """
        python = self.python(install)
        with tempfile.TemporaryDirectory(prefix="steadfast-peer-", ignore_cleanup_errors=True) as folder:
            # Not the standard output, which peers write to as well.
            file = Path(folder, "answer.json")
            command = [
                str(python),
                "-m",
                f"benchmarks.peers.{self.module}",
                self.measure,
                str(count),
                str(file),
            ]
            peak = Peak(folder, every_s=0.1)
            try:
                _run(command, folder)
            finally:
                most = peak.stop()
            return json.loads(file.read_text()), most


def _run(command: list[str], folder: str) -> None:
    own = {"PYTHONPATH": str(ROOT), "HOME": folder, "TMPDIR": folder, "STEADFAST_PEER": folder}
    complained = Path(folder, "stderr")
    # No pipes: what a peer leaves behind would keep them open.
    with open(complained, "w") as err:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | SAY_NOTHING | own,
            stdout=subprocess.DEVNULL,
            stderr=err,
            start_new_session=True,
        )
    try:
        status = process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{command[3]} is not done after {PATIENCE_S:.0f} s") from error
    finally:
        _end(process)
    if status:
        lines = complained.read_text().strip().splitlines()
        raise Missing(f"{command[3]} failed: {lines[-1] if lines else status}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what it left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

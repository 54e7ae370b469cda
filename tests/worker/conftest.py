"""Runs with real processes: started in their own folders, and all of them gone at the end of a test."""

import os
import sys
import time

import pytest

from tests.fixtures.local_cluster import patience
from worker import process
from worker.output_spool import SpoolReader

DEADLINE_S = 120.0


@pytest.fixture
def eventually():
    """Ask until the answer is true, and return it."""

    def ask(question, what="it"):
        deadline = time.monotonic() + DEADLINE_S * patience()
        while not (answer := question()):
            assert time.monotonic() < deadline, f"{what} did not come about"
            time.sleep(0.01)
        return answer

    return ask


class Runs:
    """Starts commands under shims in one folder."""

    def __init__(self, folder, eventually):
        self.folder, self.eventually = folder, eventually

    def dir(self, name="run"):
        return self.folder / "runs" / name

    def prepare(self, *argv, name="run", cwd=None, **env):
        process.prepare(self.dir(name), argv, cwd or self.folder, {"PATH": os.environ["PATH"], **env})
        return self.dir(name)

    def start(self, *argv, name="run", cwd=None, **env):
        run = self.prepare(*argv, name=name, cwd=cwd, **env)
        process.start(run)
        return run

    def python(self, code, **more):
        return self.start(sys.executable, "-u", "-c", code, **more)

    def ended(self, run):
        return self.eventually(lambda: process.read_exit(run), f"the end of {run}")

    def lines(self, run):
        """Everything that was printed so far, as (stream, text); nothing is acknowledged."""
        reader, lines = SpoolReader(run), []
        while (batch := reader.read()) is not None:
            lines += [(line.stdtype, line.text) for line in batch.lines]
            reader.acknowledge(batch)
        return lines

    def wait_for_line(self, run, text):
        """Wait until a line with that text is in the spool."""
        folder = run / "spool"
        self.eventually(
            lambda: any(text.encode() in path.read_bytes() for path in folder.glob("*.log")), f"'{text}'"
        )


@pytest.fixture
def runs(tmp_path, eventually):
    made = Runs(tmp_path, eventually)
    yield made
    for run, state in process.find_runs(tmp_path / "runs").items():
        if state == "running":
            process.kill(run)
            made.ended(run)
        elif state == "lost":
            process.end_lost_run(run, "end of the test")

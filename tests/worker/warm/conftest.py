"""Templates of real interpreters, and the same command started cold and from them."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import pytest

from worker import process
from worker.warm import template
from worker.warm.warm_start import ColdStart, plan_start

PYTHON = str(Path(sys.executable).parent)


class Templates:
    """Templates by what runs need of them, each made when it is first needed."""

    def __init__(self):
        self._made = {}

    def get(self, plan, modules=()):
        key = plan.key, plan.names, tuple(modules)
        if key not in self._made:
            self._made[key] = asyncio.run(template.make(plan.key, plan.names, modules))
        return self._made[key]

    def close(self):
        for made in self._made.values():
            made.end()
            made.wait_until_gone()


class Both:
    """Starts one command cold and warm, in the same folder with the same environment."""

    def __init__(self, runs, templates):
        self.runs = runs
        self.templates = templates
        self.workdir = runs.folder / "own" / "workdir"
        self.workdir.mkdir(parents=True)
        self._count = 0

    def write(self, text, *names):
        for name in names or ("train.py",):
            path = self.workdir / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def env(self, **more):
        """As a task has it, with something that each run has of its own."""
        common = {"PATH": f"{PYTHON}:{os.environ['PATH']}", "HOME": "/", "PYTHONUNBUFFERED": "1", "PWD": "/"}
        return common | {"DET_INFO_DIR": str(self.workdir.parent), "CUDA_VISIBLE_DEVICES": ""} | more

    def wanted(self, argv, **more):
        return plan_start(argv, self.env(**more), self.workdir, "ann")

    def prepare(self, argv, fence=None, **more):
        self._count += 1
        run = self.runs.dir(f"run-{self._count}")
        process.prepare(run, argv, self.workdir, self.env(**more), fence)
        return run

    def cold(self, argv, **more):
        """What it printed, by stream, and its exit."""
        run = self.prepare(argv, **more)
        process.start(run)
        return self._end(run)

    def warm(self, argv, modules=(), **more):
        plan = self.wanted(argv, **more)
        assert not isinstance(plan, ColdStart), plan
        run = self.prepare(argv, **more)
        assert asyncio.run(self.templates.get(plan, modules).start(plan, run)), (run / "shim.log").read_text()
        return self._end(run)

    def _end(self, run):
        ended = self.runs.ended(run)
        log = run / "shim.log"
        assert not log.exists() or not log.read_text(), log.read_text()
        lines = self.runs.lines(run)
        streams = {name: [text for stream, text in lines if stream == name] for name in ("stdout", "stderr")}
        return streams, (ended.code, ended.signal, ended.left_over, ended.message)


@pytest.fixture(scope="module")
def templates():
    """Those of a file: as on a worker, one serves many runs. A busy machine may take long for each step."""
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(Templates()) as made:
        for name in ("READY_TIMEOUT_S", "START_S"):
            patch.setattr(template, name, 250.0)
        yield made


@pytest.fixture
def both(runs, templates):
    return Both(runs, templates)

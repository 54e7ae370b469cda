"""What a search takes beyond the time its trials need: the six cases that Ray Tune publishes, and one more.

python -m benchmarks.overheads [--quick] [ROUNDS]

Trials sleep instead of training. Each case is scaled to two cores and to 10 or 15 seconds: the row says to
what, and what is published of trials. Processes that do the same work without a platform take turns with it:
they wait for the machine as well. A round of all cases takes three minutes, and each row comes with the end
of its case.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, running_cluster
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import median, row

SLOTS = 4
WORK = """
import pathlib, time
for step in range(1, {steps} + 1):
    time.sleep({pause_s})
    report(step)
    if {every} and step % {every} == 0:
        save(step)
"""
OURS = """
import mmap
import determined as det
data = {data!r}
if data:
    with open(data, "rb") as file:
        total = sum(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[::4096])
with det.core.init() as core:
    def report(step):
        core.train.report_training_metrics(step, {{"loss": 1.0 / step}})
    def save(step):
        with core.checkpoint.store_path({{"steps_completed": step}}) as (path, _):
            (path / "state.bin").write_bytes(bytes({megabytes} * 1_000_000))
    for op in core.searcher.operations():
{work}
        op.report_completed(1.0)
"""
BARE = """
import mmap, pathlib, sys
data = {data!r}
if data:
    with open(data, "rb") as file:
        total = sum(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[::4096])
def report(step):
    print(step, 1.0 / step, flush=True)
def save(step):
    path = pathlib.Path(sys.argv[1])
    (path / f"state-{{step}}.bin").write_bytes(bytes({megabytes} * 1_000_000))
{work}
"""
CONFIG = """
name: overheads
entrypoint: python3 train.py
searcher: {{name: random, metric: x, max_length: 1, max_trials: {trials}, max_concurrent_trials: {at_once}}}
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
max_restarts: 0
"""


@dataclass(frozen=True)
class Case:
    """One case: what is published, and what of it is run here."""

    title: str
    scale: str
    """What the published case is, where it differs."""
    trials: int
    at_once: int
    steps: int
    """Reports of a trial."""
    pause_s: float
    """Between reports."""
    every: int = 0
    """Reports from one checkpoint to the next; none if 0."""
    megabytes: int = 0
    """Of a checkpoint."""
    shared_megabytes: int = 0
    """Of data that each trial reads a byte of every page of."""
    workers: int = 1

    @property
    def ideal_s(self) -> float:
        """What it takes if nothing costs anything."""
        return -(-self.trials // self.at_once) * self.steps * self.pause_s

    def script(self, form: str, data: Path) -> str:
        """The script of a trial."""
        work = WORK.format(steps=self.steps, pause_s=self.pause_s, every=self.every)
        if form is OURS:
            work = "".join(f"        {line}\n" for line in work.splitlines())
        return form.format(
            work=work, megabytes=self.megabytes, data=str(data) if self.shared_megabytes else ""
        )


CASES = (
    Case("bookkeeping", "10,000, 16 at a time", trials=20, at_once=2, steps=1, pause_s=1.0),
    Case("results of many trials", "1,000 at once for 100 s, a result every 10 s", 8, 4, 2, 2.5),
    Case("many results", "96 at once for 100 s", trials=4, at_once=4, steps=100, pause_s=0.1),
    Case("results of many workers", "200 on 200 nodes for 300 s", 4, 4, 10, 1.0, workers=4),
    Case("a long run with checkpoints", "16 for a day, 3.75 GB every 900 s", 2, 2, 15, 1.0, 5, 100),
    Case("durable trials", "16 for 300 s", trials=2, at_once=2, steps=5, pause_s=3.0, every=1, megabytes=10),
    Case("shared data", "none", 8, 4, 1, 5.0, shared_megabytes=200),
)


@dataclass(frozen=True)
class Size:
    rounds: int = 1
    """The median counts."""
    share: float = 1.0
    """Of the pauses and the data; the figures mean something with 1 alone."""
    most: int = 1_000
    """Trials, workers and reports of a case."""


def main(size: Size) -> None:
    cases = [scaled(case, size) for case in CASES]
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        data = Path(folder, "shared.bin")
        data.write_bytes(bytes(max(case.shared_megabytes for case in cases) * 1_000_000))
        for workers in sorted({case.workers for case in cases}):
            with running_cluster(SLOTS // workers, agents=workers) as home:
                rest = Rest(address(home))
                warm_up(rest, cases[0], data, workers)
                for case in cases:
                    if case.workers == workers:
                        measure(rest, case, data, size.rounds)


def scaled(case: Case, size: Size) -> Case:
    """The same, smaller."""
    return replace(
        case,
        trials=min(case.trials, size.most),
        workers=min(case.workers, size.most),
        steps=min(case.steps, size.most),
        pause_s=case.pause_s * size.share,
        megabytes=math.ceil(case.megabytes * size.share),
        shared_megabytes=math.ceil(case.shared_megabytes * size.share),
    )


def warm_up(rest: Rest, case: Case, data: Path, workers: int) -> None:
    """On each worker a template loads behind the first trial that it could have started."""
    for _ in range(2):
        run(rest, replace(case, trials=workers, at_once=workers), data)


def measure(rest: Rest, case: Case, data: Path, rounds: int) -> None:
    """Print the row of a case."""
    turns = [(run(rest, case, data), bare(case, data)) for _ in range(rounds)]
    took, without = (median(list(column)) for column in zip(*turns, strict=True))
    parts = [f"{case.trials} trials of {case.steps * case.pause_s:g} s", f"{case.at_once} at once"]
    if case.steps > 1:
        parts.append(f"{1 / case.pause_s:.3g} results/s each")
    if case.every:
        parts.append(f"{case.megabytes} MB every {case.every * case.pause_s:g} s")
    if case.workers > 1:
        parts.append(f"{case.workers} workers")
    if case.shared_megabytes:
        parts.append(f"{case.shared_megabytes} MB for all")
    bare_too = f"bare processes {over(without, case):.3g} %"
    ratio = f"{took:.3g} s for {case.ideal_s:.3g}; {bare_too}; published: {case.scale}"
    row(f"{case.title}: {', '.join(parts)}", over(took, case), "%", "<= 5", ratio)


def over(took: float, case: Case) -> float:
    """Percent beyond the ideal time."""
    return 100 * (took / case.ideal_s - 1)


def run(rest: Rest, case: Case, data: Path) -> float:
    """Seconds from the submission of a search until it is over."""
    began = time.perf_counter()
    config = CONFIG.format(trials=case.trials, at_once=case.at_once)
    state = rest.wait(rest.create(config, case.script(OURS, data)), 900, every_s=0.05)
    assert state == "STATE_COMPLETED", state
    return time.perf_counter() - began


def bare(case: Case, data: Path) -> float:
    """Seconds that processes alone need for the same work."""
    script, began = case.script(BARE, data), time.perf_counter()
    running: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(case.trials):
            place = Path(folder, str(number))
            place.mkdir()
            command = [sys.executable, "-c", script, str(place)]
            running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            if len(running) == case.at_once:
                end(running.pop(0))
        for process in running:
            end(process)
        return time.perf_counter() - began


def end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that must not fail."""
    assert process.wait() == 0, f"a bare process failed with {process.returncode}"


BENCHMARK = Benchmark(main, Size(), quick=Size(rounds=1, share=0.02, most=2), positional=("rounds",))

if __name__ == "__main__":
    BENCHMARK.run()

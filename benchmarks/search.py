"""200 trials of adaptive_asha with an instant objective, a fresh process for each run: time, cost, memory.

python -m benchmarks.search [--quick] [TRIALS]
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, running_cluster
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import row
from services.local.home import Home
from services.local.supervisor import SERVICES

SCRIPT = """
import determined as det
info = det.get_cluster_info()
with det.core.init() as core:
    for op in core.searcher.operations():
        op.report_completed(info.trial.hparams["x"])
"""
CONFIG = """
name: search
entrypoint: python3 train.py
searcher: {{name: adaptive_asha, metric: x, max_length: 64, max_trials: {trials}, max_concurrent_trials: 16}}
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
max_restarts: 0
"""
SLOTS = 3
MIB = 1024 * 1024


@dataclass(frozen=True)
class Size:
    trials: int = 200
    idle_s: float = 3
    """How long the cluster has been idle when its memory is measured."""
    interpreters: int = 50


def main(size: Size) -> None:
    with running_cluster(slots=SLOTS) as home:
        time.sleep(size.idle_s)
        idle = tree_bytes(home)
        row("idle memory of the whole local cluster (PSS)", idle / MIB, "MiB", "< 350")
        rest = Rest(address(home))
        peak = Peak(home)
        before, began = processor_ms(home), time.perf_counter()
        id = rest.create(CONFIG.format(trials=size.trials), SCRIPT)
        # Polling fifty times a second cost the gateway as much as the search itself.
        state = rest.wait(id, 600, every_s=0.1)
        took = time.perf_counter() - began
        runs = count_runs(rest, id)
        bare = bare_processes(size.interpreters)
        ratio = f"{runs / took / bare:.2f} of bare interpreter starts ({bare:.0f}/s)"
        measure = f"{size.trials} trials ({runs} runs, {state}), {SLOTS} slots"
        row(measure, size.trials / took, "trials/s", ">= 10", ratio)
        row("peak memory of the whole process tree (PSS)", peak.stop() / MIB, "MiB", "<= 350")
        for name, spent in processor_ms(home).items():
            row(f"processor time of a trial: {name}", (spent - before[name]) / size.trials, "ms")


def count_runs(rest: Rest, id: int) -> int:
    """Allocations of an experiment."""
    tasks = rest.get(f"experiments/{id}/trials?limit=0")["trials"]
    return sum(len(rest.get(f"tasks/{t['taskIds'][0]}")["task"]["allocations"]) for t in tasks)


def processor_ms(home: Home) -> dict[str, float]:
    """Processor time of each program of a cluster so far, without scripts and their shims."""
    pids, spent = home.read("processes.json") or {}, {}
    for name in ("broker", *SERVICES):
        spent[name] = _of_threads(pids[name])
    workers = [pid for name, pid in pids.items() if name not in ("supervisor", *spent)]
    return spent | {"worker": sum(map(_of_threads, workers))}


def _of_threads(pid: int) -> float:
    # Finer than the ticks of `stat`: a few trials cost less than one tick.
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e6


def bare_processes(count: int) -> float:
    """Interpreters that start and end per second, two at a time."""
    began = time.perf_counter()
    running: list[subprocess.Popen[bytes]] = []
    for _ in range(count):
        running.append(subprocess.Popen([sys.executable, "-c", "pass"]))
        if len(running) == 2:
            running.pop(0).wait()
    for process in running:
        process.wait()
    return count / (time.perf_counter() - began)


class Peak:
    """Watches the memory of a cluster's process tree."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            self._most = max(self._most, tree_bytes(self._home))
            if self._done.wait(0.5):
                return

    def stop(self) -> int:
        """The maximum that was seen."""
        self._done.set()
        self._thread.join()
        return self._most


def tree_bytes(home: Home) -> int:
    """Proportional memory of a cluster and of the scripts that it runs."""
    mark = str(home.path).encode()
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes() or mark in (folder / "cmdline").read_bytes():
                rollup = (folder / "smaps_rollup").read_text()
                total += int(rollup.split("Pss:")[1].split()[0]) * 1024
        except (OSError, IndexError):
            continue
    return total


BENCHMARK = Benchmark(main, Size(), quick=Size(trials=4, idle_s=0, interpreters=2), given=("trials",))

if __name__ == "__main__":
    BENCHMARK.run()

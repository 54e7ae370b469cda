"""200 trials of adaptive_asha with an instant objective, a fresh process for each run: time, cost, memory.

python -m benchmarks.search [--quick] [TRIALS]
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, mark, running_cluster
from benchmarks.kit.memory import MIB, Peak, tree_bytes
from benchmarks.kit.processor import processor_ms
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import row

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


@dataclass(frozen=True)
class Size:
    trials: int = 200
    idle_s: float = 3
    """How long the cluster has been idle when its memory is measured."""
    interpreters: int = 50


def main(size: Size) -> None:
    with running_cluster(slots=SLOTS) as home:
        time.sleep(size.idle_s)
        idle = tree_bytes(mark(home))
        row("idle memory of the whole local cluster (PSS)", idle / MIB, "MiB", "< 350")
        rest = Rest(address(home))
        peak = Peak(mark(home))
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


BENCHMARK = Benchmark(main, Size(), quick=Size(trials=4, idle_s=0, interpreters=2), positional=("trials",))

if __name__ == "__main__":
    BENCHMARK.run()

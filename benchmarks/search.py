"""200 trials of adaptive_asha with an instant objective, a fresh process for each run; and memory.

python -m benchmarks.search [TRIALS]
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmarks.cluster import address, running_cluster
from benchmarks.rest import Rest
from benchmarks.table import head, row
from services.local.home import Home

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


def main(trials: int) -> None:
    head()
    with running_cluster(slots=SLOTS) as home:
        time.sleep(3)
        idle = tree_bytes(home)
        row("idle memory of the whole local cluster (PSS)", idle / MIB, "MiB", "< 400")
        rest = Rest(address(home))
        peak = Peak(home)
        began = time.perf_counter()
        state = rest.wait(rest.create(CONFIG.format(trials=trials), SCRIPT), 600)
        took = time.perf_counter() - began
        runs = count_runs(rest)
        bare = bare_processes(50)
        ratio = f"{runs / took / bare:.2f} of bare interpreter starts ({bare:.0f}/s)"
        row(
            f"{trials} trials ({runs} runs, {state}), {SLOTS} slots",
            trials / took,
            "trials/s",
            ">= 10",
            ratio,
        )
        row("peak memory of the whole process tree (PSS)", peak.stop() / MIB, "MiB", "<= 400")


def count_runs(rest: Rest) -> int:
    """Allocations of the only experiment."""
    tasks = rest.get("experiments/1/trials?limit=0")["trials"]
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


class Peak:
    """Watches the memory of a cluster's process tree."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self._most = max(self._most, tree_bytes(self._home))

    def stop(self) -> int:
        """The most that was seen."""
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


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

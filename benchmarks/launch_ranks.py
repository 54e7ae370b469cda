"""From submit to the first collective of several ranks under torch's launcher, warm and cold.

python -m benchmarks.launch_ranks [--quick] [RANKS] [TIMES]
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, running_cluster
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import median, row

SCRIPT = """
import json, os, sys, time
was_loaded = "torch" in sys.modules
import torch, torch.distributed
torch.distributed.init_process_group("gloo")
torch.distributed.all_reduce(torch.ones(1))
at = time.time()
torch.distributed.destroy_process_group()
if os.environ["RANK"] == "0":
    open({path!r}, "w").write(json.dumps({{"was_loaded": was_loaded, "at": at}}))
"""
CONFIG = """
name: ranks
entrypoint: python3 -m determined.launch.torch_distributed python3 train.py
environment: {{warm: {warm}}}
resources: {{slots_per_trial: {ranks}}}
searcher: {{name: single, metric: x, max_length: 1}}
max_restarts: 0
"""
MOST_TRIES = 30


@dataclass(frozen=True)
class Size:
    ranks: int = 4
    times: int = 5


class Launches:
    """Submits jobs of several ranks, the first of which records the time."""

    def __init__(self, rest: Rest, folder: Path, ranks: int) -> None:
        self._rest = rest
        self._left = folder / "times.json"
        self._script = SCRIPT.format(path=str(self._left))
        self._ranks = ranks

    def submit(self, warm: bool) -> tuple[float, bool]:
        """Seconds to the end of the first collective, and whether the rank found torch loaded."""
        config = CONFIG.format(warm=str(warm).lower(), ranks=self._ranks)
        began = time.time()
        self._rest.wait(self._rest.create(config, self._script))
        left = json.loads(self._left.read_text())
        return left["at"] - began, left["was_loaded"]

    def warm_up(self) -> None:
        """Submit until ranks find torch loaded."""
        for _ in range(MOST_TRIES):
            began = time.monotonic()
            if self.submit(True)[1]:
                return
            time.sleep(max(1.0, time.monotonic() - began))
        raise TimeoutError("no template came about: see the worker's log")


def main(size: Size) -> None:
    with tempfile.TemporaryDirectory() as folder, running_cluster(slots=size.ranks) as home:
        launches = Launches(Rest(address(home)), Path(folder), size.ranks)
        launches.warm_up()
        turns = [(launches.submit(True)[0], launches.submit(False)[0]) for _ in range(size.times)]
    warm, cold = (median(column) for column in zip(*turns, strict=True))
    measure = f"submit to the first collective of {size.ranks} torch ranks"
    row(f"{measure}, warm", warm, "s", "<= 0.6", f"{warm / cold:.2f} of cold")
    row(f"{measure}, cold", cold, "s")


BENCHMARK = Benchmark(
    main, Size(), quick=Size(ranks=2, times=1), positional=("ranks", "times"), needs=("torch",)
)

if __name__ == "__main__":
    BENCHMARK.run()

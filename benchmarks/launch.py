"""From submit to a script's first line on an idle slot, warm and cold in turns, next to a bare process.

python -m benchmarks.launch [--quick] [TIMES] [TORCH_TIMES]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, running_cluster
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import median, row

NO_OP = """
import sys, time
was_loaded = "determined" in sys.modules
import determined
print("first line", flush=True)
times = {"was_loaded": was_loaded, "line": time.time()}
"""
BARE = "import time; times = {'line': time.time(), 'was_loaded': True}"
TORCH = """
import sys, time
was_loaded = "torch" in sys.modules
import torch
print("first line", flush=True)
times = {"was_loaded": was_loaded, "line": time.time()}
model = torch.nn.Linear(64, 8)
optimizer = torch.optim.AdamW(model.parameters())
model(torch.ones(16, 64)).sum().backward()
optimizer.step()
times["step"] = time.time() - times["line"]
"""
LEAVE = "\nimport json\nopen({path!r}, 'w').write(json.dumps(times))\n"
CONFIG = """
name: no-op
entrypoint: python3 train.py
environment: {{warm: {warm}}}
searcher: {{name: single, metric: x, max_length: 1}}
max_restarts: 0
"""
MOST_TRIES = 30
Times = dict[str, float]


@dataclass(frozen=True)
class Size:
    times: int = 15
    torch_times: int = 7


class Starts:
    """Submits scripts that record when they reached certain points."""

    def __init__(self, rest: Rest, folder: Path) -> None:
        self._rest = rest
        self._left = folder / "times.json"

    def bare(self) -> float:
        """Seconds from starting an interpreter to the first line of a script."""
        began = time.time()
        subprocess.run([sys.executable, "-c", self._with_end(BARE)], check=True, stdout=subprocess.DEVNULL)
        return self._read()["line"] - began

    def submit(self, script: str, warm: bool) -> Times:
        """Seconds from submit to `line`, and what else the script recorded."""
        began = time.time()
        id = self._rest.create(CONFIG.format(warm=str(warm).lower()), self._with_end(script))
        self._rest.wait(id)
        left = self._read()
        return left | {"line": left["line"] - began}

    def warm_up(self, script: str) -> None:
        """Submit until a script finds its packages loaded."""
        for _ in range(MOST_TRIES):
            began = time.monotonic()
            if self.submit(script, True)["was_loaded"]:
                return
            # A template loads for about as long as the script did: another cold one beside it would delay
            # both.
            time.sleep(max(1.0, time.monotonic() - began))
        raise TimeoutError("no template came about: see the worker's log")

    def _with_end(self, script: str) -> str:
        return script + LEAVE.format(path=str(self._left))

    def _read(self) -> Times:
        times: Times = json.loads(self._left.read_text())
        return times


def main(size: Size) -> None:
    with tempfile.TemporaryDirectory() as folder, running_cluster(slots=1) as home:
        starts = Starts(Rest(address(home)), Path(folder))
        starts.warm_up(NO_OP)
        turns = [
            (starts.bare(), starts.submit(NO_OP, True)["line"], starts.submit(NO_OP, False)["line"])
            for _ in range(size.times)
        ]
        bare, warm, cold = (median(list(column)) for column in zip(*turns, strict=True))
        row("bare subprocess to its first line", bare * 1e3, "ms")
        row("submit to first line, warm", warm * 1e3, "ms", "<= 20", f"{warm / bare:.1f} x bare subprocess")
        row("submit to first line, cold", cold * 1e3, "ms", "<= 100", f"{cold / bare:.1f} x bare subprocess")
        starts.warm_up(TORCH)
        pairs = [(starts.submit(TORCH, True), starts.submit(TORCH, False)) for _ in range(size.torch_times)]
    for index, (kind, line, step) in enumerate((("warm", "<= 60", "<= 100"), ("cold", "", ""))):
        of_kind = [pair[index] for pair in pairs]
        row(f"a script that imports torch, {kind}", median([t["line"] for t in of_kind]) * 1e3, "ms", line)
        first = median([t["step"] for t in of_kind]) * 1e3
        row(f"from there to its first optimizer step, {kind}", first, "ms", step)


BENCHMARK = Benchmark(main, Size(), quick=Size(1, 1), positional=("times", "torch_times"), needs=("torch",))

if __name__ == "__main__":
    BENCHMARK.run()

"""From submit to the first line of a script that does nothing, on an idle slot; beside a bare subprocess.

python -m benchmarks.launch [--quick] [TIMES]
"""

from __future__ import annotations

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

SCRIPT = 'import time\nopen({path!r}, "w").write(repr(time.time()))\nprint("first line", flush=True)\n'
CONFIG = """
name: no-op
entrypoint: python3 train.py
searcher: {name: single, metric: x, max_length: 1}
max_restarts: 0
"""


@dataclass(frozen=True)
class Size:
    times: int = 15


def main(size: Size) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stamp = Path(folder) / "stamp"
        script = SCRIPT.format(path=str(stamp))
        bare = median([bare_subprocess(script, stamp) for _ in range(size.times)])
        with running_cluster(slots=1) as home:
            rest = Rest(address(home))
            took = []
            for _ in range(size.times):
                began = time.time()
                id = rest.create(CONFIG, script)
                rest.wait(id)
                took.append(float(stamp.read_text()) - began)
    row("bare subprocess to its first line", bare * 1e3, "ms")
    whole = median(took)
    row("submit to first line", whole * 1e3, "ms", "<= 100", f"{whole / bare:.1f} x bare subprocess")


def bare_subprocess(script: str, stamp: Path) -> float:
    """Seconds from starting an interpreter to the script's first line."""
    began = time.time()
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
    return float(stamp.read_text()) - began


BENCHMARK = Benchmark(main, Size(), quick=Size(times=2), given=("times",))

if __name__ == "__main__":
    BENCHMARK.run()

"""Runs every benchmark, or the named ones, as one table: `make bench`.

python -m benchmarks [--quick] [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from benchmarks.kit.processes import start_module

NAMES = (
    "report_latency",
    "launch",
    "launch_ranks",
    "fold_rate",
    "archive",
    "rebuild",
    "one_event",
    "aged",
    "long_history",
    "decisions",
    "control_latency",
    "long_polls",
    "followers",
    "scheduling_pass",
    "search_methods",
    "placements",
    "fleet",
    "search",
    "beside_peers",
    "overheads",
    "growth",
    "trainer",
    "cli",
    "checkpoints",
    "metrics_ingest",
    "shared_ingest",
    "series_query",
    "logs",
    "log_page",
    "catalogue",
    "rest_reads",
    "charts",
    "webui",
)
HEAD_LINES = 2


def main() -> int:
    """Run one after the other, each in a process of its own; returns the exit status."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", choices=[*NAMES, []], help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, which only show that it runs")
    args = parser.parse_args()
    failed = [
        name
        for number, name in enumerate(args.names or NAMES)
        if not printed(name, ["--quick"] if args.quick else [], with_head=number == 0)
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def printed(name: str, words: list[str], with_head: bool) -> bool:
    """Print a benchmark's rows; returns False, after printing its output, if it failed."""
    pipe = subprocess.PIPE
    with start_module(f"benchmarks.{name}", *words, stdout=pipe, stderr=pipe, text=True) as process:
        output, errors = process.communicate()
    lines = output.splitlines()[0 if with_head else HEAD_LINES :]
    if lines:
        print("\n".join(lines), flush=True)
    if process.returncode == os.EX_UNAVAILABLE:
        print(f"{name} is left out: {errors.strip()}", file=sys.stderr, flush=True)
    elif process.returncode:
        print(f"{name} failed:\n{errors}", file=sys.stderr, flush=True)
    return process.returncode in (0, os.EX_UNAVAILABLE)


if __name__ == "__main__":
    sys.exit(main())

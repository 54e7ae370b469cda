"""Every benchmark, one table: `make bench`."""

import subprocess
import sys

NAMES = (
    "report_latency",
    "launch",
    "fold_rate",
    "decisions",
    "control_latency",
    "scheduling_pass",
    "search_methods",
    "placements",
    "search",
    "cli",
    "checkpoints",
    "metrics_ingest",
    "series_query",
    "logs",
    "log_page",
    "catalogue",
    "charts",
)

for name in NAMES:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    print("\n".join(lines if name == NAMES[0] else lines[2:]), flush=True)
    if done.returncode:
        sys.exit(f"benchmarks.{name} failed:\n{done.stderr}")

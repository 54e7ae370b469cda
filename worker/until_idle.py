"""`python -m worker.until_idle HOME SECONDS`: returns when nothing runs on a worker, or after so long.

Kubernetes runs it in a pod that is to end, before it sends SIGTERM: scripts that were asked to leave have
time to save what they have.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from worker.orders import Orders

LOOK_S = 0.25


def main() -> None:
    """Wait."""
    parser = argparse.ArgumentParser(prog="python -m worker.until_idle")
    parser.add_argument("home", type=Path, help="STEADFAST_WORKER_HOME of the worker")
    parser.add_argument("seconds", type=float, help="longest that is waited")
    args = parser.parse_args()
    until = time.monotonic() + args.seconds
    while time.monotonic() < until and any(not order.over for order in Orders(args.home).all()):
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main()

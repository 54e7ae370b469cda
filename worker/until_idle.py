"""`python -m worker.until_idle HOME SECONDS`: waits until nothing runs on a worker, or until a timeout.

Kubernetes runs it in a pod that is about to be stopped, before it sends SIGTERM, so that scripts which were
asked to exit have time to save.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from worker.orders import Orders

POLL_EVERY_S = 0.25


def main() -> None:
    """Wait until the worker is idle or the timeout has passed."""
    parser = argparse.ArgumentParser(prog="python -m worker.until_idle")
    parser.add_argument("home", type=Path, help="STEADFAST_WORKER_HOME of the worker")
    parser.add_argument("seconds", type=float, help="maximum time to wait")
    args = parser.parse_args()
    until = time.monotonic() + args.seconds
    while time.monotonic() < until and any(not order.over for order in Orders(args.home).all()):
        time.sleep(POLL_EVERY_S)


if __name__ == "__main__":
    main()

"""A training script that does nothing but report.

python -m benchmarks.kit.reporter URL TRIAL REPORTS NAMES

Connects, prints a line to say so, starts when it reads a line, and prints another when everything is stored.
"""

from __future__ import annotations

import sys

from determined import ClusterInfo, TrialInfo
from determined.core._distributed import DummyDistributedContext
from determined.core._train import TrainContext
from determined.transport.bus import BusTransport
from determined.transport.bus_thread import BusThread


def info(trial: int) -> ClusterInfo:
    """What a script on a cluster would know."""
    config = {"searcher": {"metric": "loss", "smaller_is_better": True}}
    own = TrialInfo(trial, 1, 1, {}, config, 0, 1, False)
    task = f"1.{trial}"
    return ClusterInfo("http://x", "c", "a", [0], task, f"{task}.1", "s", "TRIAL", trial_info=own)


def train_context(url: str, trial: int) -> tuple[TrainContext, BusTransport]:
    """A started context of the real SDK, on a broker without accounts."""
    transport = BusTransport(info(trial), BusThread([url], None, "_INBOX"))
    transport.start()
    return TrainContext(transport, DummyDistributedContext(), trial_id=trial, exp_id=1, run_id=1), transport


def main(url: str, trial: int, reports: int, names: int) -> None:
    train, transport = train_context(url, trial)
    columns = [f"m{number}" for number in range(names)]
    print("ready", flush=True)
    sys.stdin.readline()
    for step in range(1, reports + 1):
        train.report_training_metrics(step, dict.fromkeys(columns, 1.0 / step))
    transport.close()
    print("stored", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))

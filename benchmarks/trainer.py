"""The overhead of the Trainer over a plain PyTorch loop, on a model so small that only loops count.

python -m benchmarks.trainer [--quick] [BATCHES]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, running_cluster
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import median, row

REPORT_EVERY = 10
ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
import sys
from pathlib import Path
from typing import Any
sys.path.insert(0, {root!r})
from benchmarks.trainer import measure
measure({mode!r}, {count}, {warm}, Path({to!r}))
"""
CONFIG = """
name: trainer
entrypoint: python3 train.py
searcher: {{name: single, metric: x, max_length: {{batches: {count}}}}}
hyperparameters: {{}}
max_restarts: 0
"""


@dataclass(frozen=True)
class Size:
    batches: int = 5_000
    warm: int = 500
    """Warm-up batches, which are not measured."""
    rounds: int = 7


def batches_of(count: int) -> list[Any]:
    """What both loops train on: (2, 4) and (2, 1), ready as tensors."""
    import torch

    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(2, 4, generator=generator), torch.randn(2, 1, generator=generator))] * count


def plain(count: int) -> float:
    """Microseconds per batch of a careful script, which reads the loss every ten batches."""
    import torch

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    data = batches_of(count)
    losses: list[Any] = []
    began = time.perf_counter()
    for index, (x, y) in enumerate(data):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if (index + 1) % REPORT_EVERY == 0:
            float(sum(losses)) / REPORT_EVERY
            losses.clear()
    return (time.perf_counter() - began) / count * 1e6


def trainer(count: int) -> dict[str, float]:
    """The same under `Trainer.fit`, reporting every ten batches; on a cluster if there is one."""
    import torch

    import determined as det
    from determined import pytorch

    clock = time.perf_counter
    marks: dict[str, float] = {}

    class Trial(pytorch.PyTorchTrial):
        def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
            self.context = context
            self.model = context.wrap_model(torch.nn.Linear(4, 1))
            self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.01))
            context.experimental.disable_dataset_reproducibility_checks()

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            if batch_idx == 0:
                marks["first"] = clock()
            x, y = batch
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            self.context.backward(loss)
            self.context.step_optimizer(self.optimizer)
            return {"loss": loss}

        def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
            marks.setdefault("last", clock())
            return {"x": 0.0}

        def build_training_data_loader(self) -> list[Any]:
            return batches_of(count)

        def build_validation_data_loader(self) -> list[Any]:
            return batches_of(1)

    with pytorch.init(enable_tensorboard_logging=False) as context:
        trial = Trial(context)
        on_cluster = det.get_cluster_info() is not None
        began = clock()
        pytorch.Trainer(trial, context).fit(
            max_length=None if on_cluster else pytorch.Batch(count),
            reporting_period=pytorch.Batch(REPORT_EVERY),
            checkpoint_policy="none",
        )
    spent = marks["last"] - marks["first"]
    return {"trainer_us": spent / count * 1e6, "to_first_ms": (marks["first"] - began) * 1e3}


def memory_mib() -> float:
    """Peak memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def measure(mode: str, count: int, warm: int, to: Path) -> None:
    """Save the measurements of one process: the plain loop before and after, the Trainer in between."""
    import torch

    torch.set_num_threads(1)
    plain(warm)
    measurements = {"plain_us": plain(count)}
    if mode == "trainer":
        measurements |= trainer(count)
        measurements["plain_us"] = (measurements["plain_us"] + plain(count)) / 2
        measurements["added_us"] = measurements["trainer_us"] - measurements["plain_us"]
    to.write_text(json.dumps(measurements | {"memory_mib": memory_mib()}))


def script(mode: str, size: Size, to: Path) -> str:
    """A script that measures, and saves the results at `to`."""
    return SCRIPT.format(root=str(ROOT), mode=mode, count=size.batches, warm=size.warm, to=str(to))


def in_process(mode: str, size: Size, folder: Path) -> dict[str, float]:
    """Measure in a process of its own, without a cluster."""
    result = folder / "result.json"
    command = [sys.executable, "-c", script(mode, size, result)]
    variables = os.environ | {"XDG_DATA_HOME": str(folder / "data")}
    empty = folder / "code"
    empty.mkdir(exist_ok=True)
    done = subprocess.run(command, cwd=empty, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(result.read_text()))


def in_trial(size: Size, rest: Rest, folder: Path) -> dict[str, float]:
    """Measure in a trial of a live cluster."""
    result = folder / "trial.json"
    config = CONFIG.format(count=size.batches)
    state = rest.wait(rest.create(config, script("trainer", size, result)), 120)
    if state != "STATE_COMPLETED":
        raise SystemExit(f"a trial ended as {state}")
    return dict(json.loads(result.read_text()))


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Of each measure."""
    return {name: median([measurements[name] for measurements in rounds]) for name in rounds[0]}


def main(size: Size) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = medians([in_process("plain", size, folder) for _ in range(size.rounds)])
        local = medians([in_process("trainer", size, folder) for _ in range(size.rounds)])
        row("plain loop, per batch", local["plain_us"], "us")
        show("Trainer adds, per batch, without a cluster", local)
        row("its memory beyond a plain loop's", local["memory_mib"] - bare["memory_mib"], "MiB", "<= 30")
        row("from fit() to the first batch", local["to_first_ms"], "ms")
        with running_cluster(slots=1) as home:
            rest = Rest(address(home))
            on_cluster = medians([in_trial(size, rest, folder) for _ in range(size.rounds)])
        row("plain loop in a trial, per batch", on_cluster["plain_us"], "us")
        show("Trainer adds, per batch, reporting to a cluster", on_cluster)
        row("its memory beyond a plain loop's", on_cluster["memory_mib"] - bare["memory_mib"], "MiB", "<= 30")
        row("from fit() to the first batch", on_cluster["to_first_ms"], "ms")


def show(what: str, measurements: dict[str, float]) -> None:
    """A row on the overhead."""
    row(
        what,
        measurements["added_us"],
        "us",
        "<= 25",
        f"{measurements['added_us'] / measurements['plain_us']:.2f} of a plain batch",
    )


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(batches=20, warm=5, rounds=1),
    positional=("batches",),
    needs=("torch",),
)

if __name__ == "__main__":
    BENCHMARK.run()

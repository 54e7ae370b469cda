"""What users would pick instead, beside this platform in one run: each peer in an environment of its own.

python -m benchmarks.beside_peers [--quick] [TRIALS] [ROUNDS] [POINTS] [GROUPS]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, mark, running_cluster
from benchmarks.kit.live import make_streams, running_broker
from benchmarks.kit.memory import MIB, Peak
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import median, percentile, row
from benchmarks.metrics_ingest import Reporters, metrics_service
from benchmarks.peers.answers import NAMES, Answer, milliseconds
from benchmarks.peers.environments import Missing
from benchmarks.peers.program import Program
from benchmarks.report_latency import reports

AT_ONCE = 3
"""Trials that run at the same time, with everybody."""
OURS = "Steadfast"
TRIAL = """
import determined as det
info = det.get_cluster_info()
with det.core.init() as core:
    for op in core.searcher.operations():
        op.report_completed(info.trial.hparams["x"])
"""
SEARCH = """
name: beside peers
entrypoint: python3 train.py
environment: {{warm: {warm}}}
searcher: {{name: random, metric: x, max_length: 1, max_trials: {trials}, max_concurrent_trials: 16}}
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
max_restarts: 0
"""
CURVE = """
from determined import core
with core.init() as context:
    for step in range(1, {points} + 1):
        context.train.report_training_metrics(step, {{"loss": 1.0 / step}})
    for op in context.searcher.operations():
        op.report_completed(1.0)
"""
WITH_CURVE = """
name: a curve beside peers
entrypoint: python3 train.py
searcher: {name: single, metric: x, max_length: 1}
max_restarts: 0
"""
Measurement = tuple[Answer, int]
"""What a measure answers, and the peak memory in bytes; 0 where it is not shown."""


@dataclass(frozen=True)
class Size:
    trials: int = 200
    """Of those that are fast; slower ones run a part of them."""
    rounds: int = 3
    """The median counts; all take turns in each."""
    reports: int = 2_000
    """Calls whose cost is measured."""
    points: int = 1_000_000
    """That are stored, and of a curve that is read; peers get a part of them."""
    least: int = 10
    """The smallest part."""
    groups: str = "trials,reports,stored,curves"
    """Which parts of the table are measured."""
    install: bool = True
    """Install peers that are not there; otherwise they are left out."""


@dataclass(frozen=True)
class Contender:
    """One row of a group: how it is run, and which part of the group's size it gets."""

    title: str
    run: Callable[[int, Size], Measurement]
    part: int = 1
    """One in so many."""

    def count(self, whole: int, size: Size) -> int:
        return max(whole // self.part, min(whole, size.least))


def peer(title: str, environment: str, module: str, measure: str, part: int = 1) -> Contender:
    """A program of a peer."""
    program = Program(title, environment, module, measure)
    return Contender(title, lambda count, size: program.run(count, size.install), part)


def searched(warm: bool, count: int, size: Size) -> Measurement:
    """Trials a second of a search in a running cluster, and the memory of all of it."""
    with running_cluster(AT_ONCE) as home:
        rest = Rest(address(home))
        # A template loads behind the first trial that it could have started.
        _search(rest, warm, min(count, 2 * AT_ONCE))
        peak = Peak(mark(home))
        began = time.perf_counter()
        _search(rest, warm, count)
        return {"per_second": count / (time.perf_counter() - began)}, peak.stop()


def _search(rest: Rest, warm: bool, trials: int) -> None:
    config = SEARCH.format(trials=trials, warm=str(warm).lower())
    state = rest.wait(rest.create(config, TRIAL), 900, every_s=0.1)
    assert state == "STATE_COMPLETED", state


def reported(count: int, _: Size) -> Measurement:
    """What a call costs a script, p50 and p99."""
    with running_broker() as server:
        asyncio.run(make_streams(server))
        took, transport = reports(server.url, count)
        transport.close()
    return {"p50": 1e6 * percentile(took, 0.5), "p99": 1e6 * percentile(took, 0.99)}, 0


def stored(names: int, points: int, _: Size) -> Measurement:
    """Points a second from a script until a query answers them."""
    with tempfile.TemporaryDirectory() as folder, running_broker() as server:
        asyncio.run(make_streams(server))
        with metrics_service(server, f"sqlite:///{folder}/metrics.db"):
            return {"per_second": Reporters(server.url, 1, points // names, names).rate()}, 0


def curve(points: int, _: Size) -> Measurement:
    """Milliseconds for a curve, over HTTP, as a page draws it: 1,000 buckets with their extremes."""
    with running_cluster(AT_ONCE) as home:
        rest = Rest(address(home))
        id = rest.create(WITH_CURVE, CURVE.format(points=points))
        assert rest.wait(id, 900, every_s=0.1) == "STATE_COMPLETED"
        trial = rest.get(f"experiments/{id}/trials")["trials"][0]["id"]
        read = partial(rest.get, f"series?trialIds={trial}&names=loss&group=training&width=1000")
        _until(lambda: sum(series["count"] for series in read()["series"]) == points)
        return milliseconds(read), 0


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "the points are not all there after a minute"
        time.sleep(0.05)


TRIALS = (
    Contender(f"{OURS}, warm", partial(searched, True)),
    Contender(f"{OURS}, cold", partial(searched, False), part=4),
    peer("Ray Tune, fresh processes", "ray", "ray_tune", "fresh-trials", part=10),
    peer("Ray Tune, processes used again", "ray", "ray_tune", "reused-trials"),
    peer("Syne Tune, local backend", "syne_tune", "syne_tune_local", "trials", part=4),
    peer("submitit, local executor", "submitit", "submitit_local", "trials", part=10),
    peer("dask, processes used again", "dask", "dask_local", "trials"),
    peer("Optuna, SQLite, in one process", "optuna", "optuna_storage", "sqlite-trials"),
    peer("Optuna, journal, in one process", "optuna", "optuna_storage", "journal-trials"),
    peer("MLflow, runs in one process", "mlflow", "mlflow_tracking", "trials"),
    peer("W&B, offline runs in one process", "wandb", "wandb_offline", "trials", part=20),
    peer("Bare subprocesses", "", "bare_processes", "trials"),
)
REPORTS = (
    Contender(OURS, reported),
    peer("Ray Tune", "ray", "ray_tune", "report"),
    peer("Syne Tune", "syne_tune", "syne_tune_local", "report"),
    peer("Optuna, SQLite", "optuna", "optuna_storage", "sqlite-report", part=10),
    peer("Optuna, journal", "optuna", "optuna_storage", "journal-report", part=10),
    peer("MLflow", "mlflow", "mlflow_tracking", "report", part=10),
    peer("TensorBoard, tensorboardX", "tensorboard", "tensorboard_writer", "report"),
    peer("W&B, offline", "wandb", "wandb_offline", "report"),
    peer("Bare subprocesses, a line of JSON", "", "bare_processes", "report"),
)
STORED = (
    Contender(OURS, partial(stored, len(NAMES))),
    Contender(f"{OURS}, one value a report", partial(stored, 1), part=10),
    peer("Ray Tune", "ray", "ray_tune", "stored", part=100),
    peer("Syne Tune", "syne_tune", "syne_tune_local", "stored", part=100),
    peer("Optuna, SQLite, one value a report", "optuna", "optuna_storage", "sqlite-stored", part=1000),
    peer("Optuna, journal, one value a report", "optuna", "optuna_storage", "journal-stored", part=1000),
    peer("MLflow, batches of 1,000", "mlflow", "mlflow_tracking", "stored", part=20),
    peer("MLflow, one value a report", "mlflow", "mlflow_tracking", "singles", part=5000),
    peer("TensorBoard, tensorboardX", "tensorboard", "tensorboard_writer", "stored", part=10),
    peer("W&B, offline, without a query", "wandb", "wandb_offline", "stored", part=50),
)
CURVES = (
    Contender(OURS, curve),
    Contender(f"{OURS}, as many as of peers", curve, part=10),
    peer("MLflow", "mlflow", "mlflow_tracking", "curve", part=10),
    peer("TensorBoard, tensorboardX", "tensorboard", "tensorboard_writer", "curve", part=10),
)


def main(size: Size) -> None:
    tell = {"trials": tell_trials, "reports": tell_reports, "stored": tell_stored, "curves": tell_curves}
    for group in size.groups.split(","):
        tell[group](size)


def tell_trials(size: Size) -> None:
    all_turns = turns(TRIALS, size.trials, size)
    for contender, count, measurements in all_turns:
        _row(f"{contender.title}: {count:,} short trials", measurements, "per_second", "trials/s", all_turns)
        memory = median([most for _, most in measurements]) / MIB
        row(f"{contender.title}: peak memory of the process tree (PSS)", memory, "MiB")


def tell_reports(size: Size) -> None:
    all_turns = turns(REPORTS, size.reports, size)
    for contender, _, measurements in all_turns:
        for key in ("p50", "p99"):
            _row(f"{contender.title}: a report, {key}", measurements, key, "us", all_turns)


def tell_stored(size: Size) -> None:
    all_turns = turns(STORED, size.points, size)
    for contender, count, measurements in all_turns:
        measure = f"{contender.title}: {count:,} points until a query answers them"
        _row(measure, measurements, "per_second", "points/s", all_turns)


def tell_curves(size: Size) -> None:
    all_turns = turns(CURVES, size.points, size)
    for contender, count, measurements in all_turns:
        _row(f"{contender.title}: a curve of {count:,} points is read", measurements, "p50", "ms", all_turns)


Turns = list[tuple[Contender, int, list[Measurement]]]


def turns(contenders: Sequence[Contender], whole: int, size: Size) -> Turns:
    """What each found in all rounds; those that cannot be run here are left out by name."""
    measurements: dict[str, list[Measurement]] = {contender.title: [] for contender in contenders}
    for _ in range(size.rounds):
        for contender in contenders:
            if contender.title in measurements and not _took_turn(
                contender, whole, size, measurements[contender.title]
            ):
                del measurements[contender.title]
    return [
        (contender, contender.count(whole, size), measurements[contender.title])
        for contender in contenders
        if contender.title in measurements
    ]


def _took_turn(contender: Contender, whole: int, size: Size, measurements: list[Measurement]) -> bool:
    try:
        measurements.append(contender.run(contender.count(whole, size), size))
    except Missing as why:
        print(f"{contender.title} is left out: {why}", file=sys.stderr, flush=True)
        return False
    return True


def _row(measure: str, measurements: list[Measurement], key: str, unit: str, all_turns: Turns) -> None:
    """Print the median of all rounds, beside that of the first of the group."""
    value = middle(measurements, key)
    row(measure, value, unit, "", beside(all_turns, value, key))


def middle(measurements: list[Measurement], key: str) -> float:
    """The median of all rounds."""
    return median([answer[key] for answer, _ in measurements])


def beside(all_of_them: Turns, value: float, key: str) -> str:
    """A ratio to what the first of a group, ours, has."""
    ratio = value / middle(all_of_them[0][2], key)
    shown = f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"
    return f"{shown} of {all_of_them[0][0].title}"


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(trials=2, rounds=1, reports=20, points=100, least=20, install=False),
    positional=("trials", "rounds", "points", "groups"),
)

if __name__ == "__main__":
    BENCHMARK.run()

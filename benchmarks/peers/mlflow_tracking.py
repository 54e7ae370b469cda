"""MLflow: a tracking server on SQLite, and a client that logs one by one or in batches."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

from benchmarks.peers.answers import NAMES, Answer, answer, each_call, milliseconds, rate, three

PATIENCE_S = 180.0
BATCH = 1000
"""The most metrics that one request may hold."""


@contextlib.contextmanager
def server() -> Iterator[None]:
    """A server for the length of a `with`, to which this process logs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["-m", "mlflow", "server", "--backend-store-uri", "sqlite:///mlflow.db", "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, *words, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        wait(address)
        os.environ["MLFLOW_TRACKING_URI"] = address
        yield
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def wait(address: str) -> None:
    """Wait until it answers."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/health", timeout=5):
            return
        time.sleep(0.1)
    raise TimeoutError(f"MLflow's server does not answer after {PATIENCE_S:.0f} s")


def trials(count: int) -> Answer:
    """Runs a second, each in this process, with one value logged."""
    import mlflow

    def run() -> None:
        for number in range(count):
            with mlflow.start_run():
                mlflow.log_metric("x", number / count)

    with server():
        mlflow.set_experiment("search")
        return rate(count, run)


def report(count: int) -> Answer:
    """One request for each report, as the client comes."""
    import mlflow

    with server(), mlflow.start_run():
        return each_call(lambda step: mlflow.log_metrics(three(step), step=step), count)


def log_batches(points: int, names: tuple[str, ...]) -> str:
    """Log points in the largest batches allowed; returns the run."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient()
    run = client.create_run("0").info.run_id
    for start in range(0, points, BATCH):
        numbers = range(start, min(start + BATCH, points))
        metrics = [
            Metric(names[number % len(names)], 1.0 / (number + 1), number, number // len(names))
            for number in numbers
        ]
        client.log_batch(run, metrics=metrics)
    return str(run)


def history(run: str, name: str) -> int:
    """How many points of a curve the server answers with."""
    from mlflow import MlflowClient

    return len(MlflowClient().get_metric_history(run, name))


def stored(points: int) -> Answer:
    """Points a second, from the first batch until a query answers all of them."""

    def run() -> None:
        assert history(log_batches(points, NAMES), NAMES[0]) == points // len(NAMES)

    with server():
        return rate(points, run)


def singles(reports: int) -> Answer:
    """Reports of one value a second, one request each, until a query answers them."""
    import mlflow

    def run() -> None:
        with mlflow.start_run() as active_run:
            for step in range(reports):
                mlflow.log_metric(NAMES[0], 1.0, step=step)
        assert history(active_run.info.run_id, NAMES[0]) == reports

    with server():
        return rate(reports, run)


def curve(points: int) -> Answer:
    """Milliseconds for a curve of one metric."""
    with server():
        run = log_batches(points, NAMES[:1])
        return milliseconds(lambda: history(run, NAMES[0]), times=3)


if __name__ == "__main__":
    answer({"trials": trials, "report": report, "stored": stored, "singles": singles, "curve": curve})

"""Ray Tune on one machine: each trial in a process of its own, or in one that is used again."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray import tune

from benchmarks.peers.answers import NAMES, Answer, answer, each_call, rate, three

AT_ONCE = 3


def trial(config: dict[str, Any]) -> None:
    """Report what was given."""
    tune.report({"x": config["x"]})


def searched(trainable: Any, count: int, reuse: bool, space: dict[str, Any] | None = None) -> Any:
    """Run a search in the cluster of this process."""
    how = tune.TuneConfig(num_samples=count, reuse_actors=reuse, metric="x", mode="min")
    where = tune.RunConfig(storage_path=str(Path("ray").absolute()), verbose=0)
    space = space or {"x": tune.uniform(0, 1)}
    results = tune.Tuner(trainable, param_space=space, tune_config=how, run_config=where).fit()
    assert len(results) == count
    assert not results.errors, results.errors
    return results


def trials(reuse: bool, count: int) -> Answer:
    """Trials a second, once the cluster is there."""
    ray.init(num_cpus=AT_ONCE, include_dashboard=False, log_to_driver=False)
    return rate(count, lambda: searched(trial, count, reuse))


def reports(config: dict[str, Any]) -> None:
    """Report, and leave what each call took."""
    measurement = each_call(lambda step: tune.report(three(step) | {"x": 1.0}), config["count"])
    Path(config["file"]).write_text(json.dumps(measurement))


def report(count: int) -> Answer:
    """One call for each report, inside a trial."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    file = Path("took.json").absolute()
    searched(reports, 1, False, {"count": count, "file": str(file)})
    answer: Answer = json.loads(file.read_text())
    return answer


def many(config: dict[str, Any]) -> None:
    """Report as fast as it goes."""
    for step in range(config["reports"]):
        tune.report(dict.fromkeys(NAMES, 1.0 / (step + 1)) | {"x": 1.0})


def stored(points: int) -> Answer:
    """Points a second, from the start of a trial until its table of results has all of them."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    reports = points // len(NAMES)

    def run() -> None:
        (result,) = searched(many, 1, False, {"reports": reports})
        assert len(result.metrics_dataframe) == reports

    return rate(points, run)


if __name__ == "__main__":
    answer(
        {
            "fresh-trials": partial(trials, False),
            "reused-trials": partial(trials, True),
            "report": report,
            "stored": stored,
        }
    )

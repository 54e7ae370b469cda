"""Syne Tune's local backend: each trial is a script in a process of its own."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from syne_tune import Reporter

from benchmarks.peers.answers import NAMES, Answer, answer, each_call, rate, three

AT_ONCE = 3
LOOK_S = 0.1
"""How often it looks at its trials; usually it is five seconds."""
SCRIPT = """
import argparse
from syne_tune import Reporter
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
asked, _ = parser.parse_known_args()
Reporter()(x=asked.x)
"""


def searched(script: Path, count: int) -> int:
    """Run a search; returns how many rows of results it has."""
    from syne_tune import StoppingCriterion, Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import uniform
    from syne_tune.experiments import load_experiment
    from syne_tune.optimizer.baselines import RandomSearch

    logging.getLogger().setLevel(logging.WARNING)
    tuner = Tuner(
        trial_backend=LocalBackend(entry_point=str(script)),
        scheduler=RandomSearch({"x": uniform(0, 1)}, metrics=["x"]),
        stop_criterion=StoppingCriterion(max_num_trials_finished=count),
        n_workers=AT_ONCE,
        sleep_time=LOOK_S,
        save_tuner=False,
        tuner_name="search",
    )
    tuner.run()
    return len(load_experiment(tuner.name).results)


def trials(count: int) -> Answer:
    """Trials a second."""
    script = Path("trial.py").absolute()
    script.write_text(SCRIPT)
    return rate(count, lambda: searched(script, count))


def report(count: int) -> Answer:
    """One call for each report: a line on the standard output, which is a file in trials."""
    report = Reporter()
    real = sys.stdout
    with open("stdout", "w") as sys.stdout:
        measurement = each_call(lambda step: report(**three(step)), count)
    sys.stdout = real
    return measurement


MANY = f"""
import argparse
from syne_tune import Reporter
report = Reporter()
for step in range(REPORTS):
    report(x=0.5, **dict.fromkeys({NAMES!r}, 1.0 / (step + 1)))
"""


def stored(points: int) -> Answer:
    """Points a second, from the start of a trial until its table of results has all of them."""
    reports = points // len(NAMES)
    script = Path("many.py").absolute()
    script.write_text(MANY.replace("REPORTS", str(reports)))

    def run() -> None:
        rows = searched(script, 1)
        assert rows >= reports, rows

    return rate(points, run)


if __name__ == "__main__":
    answer({"trials": trials, "report": report, "stored": stored})

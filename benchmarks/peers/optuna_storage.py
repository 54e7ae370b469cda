"""Optuna, whose trials are calls in one process, with its storages SQLite and journal file.

The first word of a measure names the storage: sqlite or journal.
"""

from __future__ import annotations

from functools import partial

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from benchmarks.peers.answers import Answer, answer, each_call, rate

optuna.logging.set_verbosity(optuna.logging.WARNING)


def storage(kind: str) -> BaseStorage:
    """A storage, opened anew."""
    if kind == "sqlite":
        return RDBStorage("sqlite:///optuna.db")
    return JournalStorage(JournalFileBackend("optuna.log"))


def study(kind: str) -> optuna.Study:
    """A new study in it."""
    return optuna.create_study(storage=storage(kind), sampler=optuna.samplers.RandomSampler(7))


def objective(trial: optuna.Trial) -> float:
    """What a trial reports."""
    return trial.suggest_float("x", 0, 1)


def trials(kind: str, count: int) -> Answer:
    """Trials a second."""
    made = study(kind)
    return rate(count, lambda: made.optimize(objective, n_trials=count))


def report(kind: str, count: int) -> Answer:
    """One value: Optuna takes no more of a step."""
    trial = study(kind).ask()
    return each_call(lambda step: trial.report(1.0 / step, step), count)


def stored(kind: str, points: int) -> Answer:
    """Points a second, from the first report until another reader finds all of them."""
    made = study(kind)
    trial = made.ask()

    def run() -> None:
        for step in range(points):
            trial.report(1.0 / (step + 1), step)
        loaded_study = optuna.load_study(study_name=made.study_name, storage=storage(kind))
        assert len(loaded_study.trials[0].intermediate_values) == points

    return rate(points, run)


if __name__ == "__main__":
    answer(
        {
            f"{kind}-{measure.__name__}": partial(measure, kind)
            for kind in ("sqlite", "journal")
            for measure in (trials, report, stored)
        }
    )

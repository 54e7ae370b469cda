"""Weights & Biases, offline: runs are files that a server would be sent later."""

from __future__ import annotations

import wandb

from benchmarks.peers.answers import NAMES, Answer, answer, each_call, rate, three


def begun() -> wandb.Run:
    """A run that logs to a file."""
    return wandb.init(mode="offline", project="search", settings=wandb.Settings(silent=True))


def trials(count: int) -> Answer:
    """Runs a second, each in this process, with one value logged."""

    def run() -> None:
        for number in range(count):
            with begun() as wandb_run:
                wandb_run.log({"x": number / count})

    return rate(count, run)


def report(count: int) -> Answer:
    """One call for each report."""
    with begun() as wandb_run:
        return each_call(lambda step: wandb_run.log(three(step), step=step), count)


def stored(points: int) -> Answer:
    """Points a second, from the first report until the file is closed; nobody can ask for them."""

    def run() -> None:
        with begun() as wandb_run:
            for step in range(points // len(NAMES)):
                wandb_run.log(dict.fromkeys(NAMES, 1.0 / (step + 1)), step=step)

    return rate(points, run)


if __name__ == "__main__":
    answer({"trials": trials, "report": report, "stored": stored})

"""submitit's local executor: each trial is a job in a process of its own."""

from __future__ import annotations

import submitit

from benchmarks.peers.answers import Answer, answer, rate

AT_ONCE = 3


def trial(x: float) -> float:
    """What a trial reports."""
    return x


def trials(count: int) -> Answer:
    """Trials a second."""
    executor = submitit.AutoExecutor(folder="jobs", cluster="local")
    executor.update_parameters(timeout_min=10)

    def run() -> None:
        # It starts what it is given at once: only so many at a time are given.
        running: list[submitit.Job[float]] = []
        for number in range(count):
            running.append(executor.submit(trial, number / count))
            if len(running) == AT_ONCE:
                running.pop(0).result()
        for job in running:
            job.result()

    return rate(count, run)


if __name__ == "__main__":
    answer({"trials": trials})

"""No platform: a loop starts an interpreter for each trial and reads the line that it prints."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from benchmarks.peers.answers import Answer, answer, each_call, rate, three

AT_ONCE = 3
SCRIPT = "import json; print(json.dumps({'x': 0.5}))"


def trials(count: int) -> Answer:
    """Trials a second."""

    def run() -> None:
        running: list[subprocess.Popen[str]] = []
        for _ in range(count):
            running.append(
                subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
            )
            if len(running) == AT_ONCE:
                read(running.pop(0))
        for process in running:
            read(process)

    return rate(count, run)


def read(process: subprocess.Popen[str]) -> float:
    """What a trial reported."""
    line, _ = process.communicate()
    return float(json.loads(line)["x"])


def report(count: int) -> Answer:
    """A line of JSON, as scripts without any platform write them."""
    with open("reports.jsonl", "w") as file:

        def write(step: int) -> None:
            file.write(json.dumps(three(step) | {"step": step, "at": time.time()}) + "\n")
            file.flush()

        return each_call(write, count)


if __name__ == "__main__":
    answer({"trials": trials, "report": report})

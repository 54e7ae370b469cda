"""TensorBoard: scalars that tensorboardX's SummaryWriter writes, and its EventAccumulator reads."""

from __future__ import annotations

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboardX import SummaryWriter

from benchmarks.peers.answers import NAMES, Answer, answer, each_call, milliseconds, rate, three

ALL_OF_THEM = {"scalars": 0}


def report(count: int) -> Answer:
    """A report of three values is three calls."""
    writer = SummaryWriter("runs")

    def write(step: int) -> None:
        for name, value in three(step).items():
            writer.add_scalar(name, value, step)

    return each_call(write, count)


def write(points: int, names: tuple[str, ...]) -> None:
    """Write points and close the file."""
    writer = SummaryWriter("runs")
    for step in range(points // len(names)):
        for name in names:
            writer.add_scalar(name, 1.0 / (step + 1), step)
    writer.close()


def read(name: str) -> int:
    """How many points of a curve a reader finds."""
    accumulator = EventAccumulator("runs", size_guidance=ALL_OF_THEM)
    accumulator.Reload()
    return len(accumulator.Scalars(name))


def stored(points: int) -> Answer:
    """Points a second, from the first report until a reader has all of them."""

    def run() -> None:
        write(points, NAMES)
        assert read(NAMES[0]) == points // len(NAMES)

    return rate(points, run)


def curve(points: int) -> Answer:
    """Milliseconds for a curve of one metric."""
    write(points, NAMES[:1])
    return milliseconds(lambda: read(NAMES[0]), times=3)


if __name__ == "__main__":
    answer({"report": report, "stored": stored, "curve": curve})

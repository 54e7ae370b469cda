"""What work costs as it grows: the same at three sizes, each ten times the one before, and the slope.

python -m benchmarks.growth [--quick]
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.beside_peers import CURVE, SEARCH, TRIAL, WITH_CURVE
from benchmarks.catalogue import Filled, catalogue, client
from benchmarks.checkpoints import up
from benchmarks.kit.ages import Cycle, Shift, message, recorded
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import address, running_cluster
from benchmarks.kit.processor import processor_ms
from benchmarks.kit.rest import Rest
from benchmarks.kit.table import median, row
from benchmarks.logs import TASK, fill
from benchmarks.scheduling_pass import CASES as POLICIES
from benchmarks.scheduling_pass import Cluster as Pool
from benchmarks.scheduling_pass import Size as PoolSize
from benchmarks.search_methods import SPACE, adaptive_asha
from det_contracts import codec, subjects
from det_contracts.events import searcher
from det_contracts.queries import LogPage
from services.kit.migrate import open_database
from services.local.home import Home
from services.metrics.logs.queries import log_page
from services.scheduler.policy.decide import decide
from services.searcher.app import RULES as SEARCHER
from services.searcher.methods import simulate

IN_PROPORTION, FLAT = "slope <= 1.1", "slope <= 0.3"
SLOTS = 3
Measure = Callable[[int], float]
"""Milliseconds of a processor for work of a size."""


@dataclass(frozen=True)
class Size:
    """The smallest of three sizes of each kind of work."""

    events: int = 500
    trials_played: int = 50
    requests: int = 150
    experiments: int = 500
    lines: int = 2_000
    megabytes: int = 1
    points: int = 1_000
    trials: int = 1
    rounds: int = 3
    """The median counts."""
    growth: tuple[int, ...] = (1, 10, 100)
    """How many times the smallest size each one is."""


class Growing(NamedTuple):
    """One kind of work, in words with its size, and what its slope should be."""

    title: str
    smallest: int
    measure: Measure
    aim: str


def main(size: Size) -> None:
    for work in by_itself(size):
        tell(work, size.growth)
    with running_cluster(SLOTS) as home:
        for work in on_a_cluster(home, size):
            tell(work, size.growth)


def tell(work: Growing, growth: tuple[int, ...]) -> None:
    """Print a row for each size; the last has the slope."""
    milliseconds = []
    for times in growth:
        count = work.smallest * times
        milliseconds.append(work.measure(count))
        is_last = times == growth[-1]
        slope = (
            f"slope {math.log(milliseconds[-1] / milliseconds[0]) / math.log(times):.2f}" if is_last else ""
        )
        row(work.title.format(f"{count:,}"), milliseconds[-1], "ms", work.aim if is_last else "", slope)


def by_itself(size: Size) -> Iterator[Growing]:
    """Work of one part, in this process."""
    yield Growing("the searcher folds {} events", size.events, partial(folded, size.rounds), IN_PROPORTION)
    played = partial(played_through, size.rounds)
    yield Growing("adaptive_asha plays {} trials", size.trials_played, played, IN_PROPORTION)
    passed = partial(scheduled, size.rounds)
    yield Growing("a scheduling pass over {} requests", size.requests, passed, IN_PROPORTION)
    listed = partial(page_of, size.rounds)
    yield Growing("a page of {} experiments, after one has changed", size.experiments, listed, IN_PROPORTION)
    yield Growing("{} lines of a log are stored", size.lines, stored, IN_PROPORTION)
    yield Growing("the newest page of {} lines", size.lines, partial(newest_of, size.rounds), FLAT)
    saved = partial(uploaded, size.rounds)
    yield Growing("a checkpoint of {} MB is stored in a directory", size.megabytes, saved, IN_PROPORTION)


def on_a_cluster(home: Home, size: Size) -> Iterator[Growing]:
    """Work of a whole cluster: what all of its programs spend on it, without the scripts."""
    rest = Rest(address(home))
    searched(rest, home, SLOTS)
    yield Growing("a search of {} trials", size.trials, partial(searched, rest, home), IN_PROPORTION)
    drawn = partial(curve, rest, home, size.rounds)
    yield Growing("a curve of {} points is read", size.points, drawn, FLAT)


def spent(work: Callable[[], object]) -> float:
    """Milliseconds that this process spends on something."""
    began = time.process_time()
    work()
    return 1e3 * (time.process_time() - began)


def folded(rounds: int, events: int) -> float:
    encoded = list(itertools.islice(bodies(), events))

    def fold() -> None:
        state = SEARCHER.state()
        for position, body in enumerate(encoded, 1):
            list(SEARCHER.evolve(state, codec.decode(body, position)))

    return median([spent(fold) for _ in range(rounds)])


def bodies() -> Iterator[bytes]:
    """What lies in CONTROL of searches that come and end, one cycle after the other."""
    cycle, first = Cycle(2, 10), Shift(0, 0, 1e9)
    for number in itertools.count():
        for record in recorded(cycle.events, cycle.later(first, number)):
            if record.stream == subjects.CONTROL:
                yield message(record, str(number))[1]


def played_through(rounds: int, trials: int) -> float:
    return median([spent(lambda: simulate(adaptive_asha(trials, False), SPACE, 7)) for _ in range(rounds)])


def scheduled(rounds: int, requests: int) -> float:
    pool = Pool(POLICIES["fair_share"], PoolSize(requests=requests))
    pool.rest()

    def whole() -> None:
        pool.book.idle_pass.invalidate()
        decide(pool.book)

    return median([spent(whole) for _ in range(rounds)])


def page_of(rounds: int, experiments: int) -> float:
    return asyncio.run(_page_of(rounds, experiments))


async def _page_of(rounds: int, experiments: int) -> float:
    filled, took = Filled(experiments), []
    with tempfile.TemporaryDirectory() as name:
        filled_catalogue, saver = catalogue(filled, Path(name))
        web = await client(filled_catalogue, Path(name))
        for _ in range(rounds + 1):
            saver.note(filled.say(searcher.ExperimentPaused(experiments, "asked")))
            began = time.process_time()
            answer = await web.get("/api/v1/experiments-search?limit=100&lean=true&sort=id%3Ddesc")
            took.append(1e3 * (time.process_time() - began))
            answer.raise_for_status()
        await web.aclose()
    return median(took[1:])


def stored(lines: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{folder}/metrics.db", "metrics")
        worked = 1e3 * fill(lines, database).worked
        database.close()
    return worked


def newest_of(rounds: int, lines: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{folder}/metrics.db", "metrics")
        fill(lines, database)
        query = LogPage(task_id=TASK, limit=200, descending=True)
        read = partial(database.read_sync, partial(log_page, query=query))
        took = median([spent(read) for _ in range(rounds)])
        database.close()
    return took


def uploaded(rounds: int, megabytes: int) -> float:
    took = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            source, place = Path(folder, "source"), Path(folder, "stored")
            source.mkdir()
            place.mkdir()
            with open(source / "weights.bin", "wb") as file:
                for _ in range(megabytes):
                    file.write(os.urandom(1_000_000))
            took.append(spent(partial(up, str(place), source)))
    return median(took)


def searched(rest: Rest, home: Home, trials: int) -> float:
    config = SEARCH.format(trials=trials, warm="true")
    return all_spent(home, lambda: done(rest, rest.create(config, TRIAL)))


def curve(rest: Rest, home: Home, rounds: int, points: int) -> float:
    id = rest.create(WITH_CURVE, CURVE.format(points=points))
    done(rest, id)
    trial = rest.get(f"experiments/{id}/trials")["trials"][0]["id"]
    path = f"series?trialIds={trial}&names=loss&group=training&width=1000"
    while sum(series["count"] for series in rest.get(path)["series"]) < points:
        time.sleep(0.05)
    return median([all_spent(home, lambda: rest.get(path)) for _ in range(rounds)])


def done(rest: Rest, id: int) -> None:
    """Wait until an experiment is over."""
    state = rest.wait(id, 900, every_s=0.5)
    assert state == "STATE_COMPLETED", state


def all_spent(home: Home, work: Callable[[], Any]) -> float:
    """Milliseconds that all programs of a cluster spend meanwhile."""
    before = sum(processor_ms(home).values())
    work()
    return sum(processor_ms(home).values()) - before


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(
        events=20,
        trials_played=2,
        requests=2,
        experiments=2,
        lines=20,
        megabytes=1,
        points=10,
        trials=1,
        rounds=1,
        growth=(1, 2, 3),
    ),
)

if __name__ == "__main__":
    BENCHMARK.run()

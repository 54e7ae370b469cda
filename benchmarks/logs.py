"""Log lines at scale: ingest, bytes on disk, pages and searches in one task's log.

python -m benchmarks.logs [--quick] [LINES] [DATABASE_URL]
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import median, percentile, row
from det_contracts import subjects
from det_contracts.queries import LogFields, LogPage
from det_contracts.reports import LogBatch, LogLine
from services.kit.database import Database
from services.kit.log import Stored
from services.kit.migrate import open_database
from services.kit.snapshot import Snapshot
from services.metrics.app import RULES
from services.metrics.domain import State
from services.metrics.logs.queries import log_fields, log_page
from services.metrics.logs.tables import CHUNKS
from services.metrics.store import project

TASK = "1.a"
BATCH, COMMIT = 1000, 20
NEEDLE = "NCCL timed out on rank 5 after 1800 s"
DIGITS = "loss=0.777777"


@dataclass(frozen=True)
class Size:
    lines: int = 10_000_000
    database_url: str = ""
    """Of a fresh database; SQLite in a temporary folder if empty."""
    rounds: int = 15


def text(chance: random.Random, number: int) -> str:
    """A line as training scripts print them."""
    match chance.randrange(10):
        case 0:
            return f"epoch {number // 10_000}: validation accuracy {chance.random():.4f}, best so far"
        case 1:
            part = chance.choice(["data", "optim", "dist"])
            return f"[{part}] worker {chance.randrange(16)} took {chance.random():.3f} s"
        case 2:
            place = f"/mnt/store/{chance.getrandbits(64):016x}"
            return f"saving checkpoint-{number} ({chance.randrange(9000)} MB) to {place}"
        case _:
            loss, rate = chance.random(), chance.random() / 1000
            return f"step {number} loss={loss:.6f} lr={rate:.3e} grad_norm={chance.random() * 9:.4f}"


def batches(lines: int) -> Iterator[bytes]:
    """Batches as workers send them, in JSON. One rare line is in the middle; levels and ranks vary."""
    chance = random.Random(7)
    for start in range(0, lines, BATCH):
        log_lines = []
        for number in range(start, min(start + BATCH, lines)):
            level = chance.choices([None, "INFO", "WARNING", "ERROR"], [50, 45, 4.9, 0.1])[0]
            message = (
                NEEDLE if number == lines // 2 else DIGITS if number == lines // 3 else text(chance, number)
            )
            log_lines.append(LogLine(1.7e9 + number * 0.001, "stdout", level, number % 8, message))
        yield msgspec.json.encode(
            LogBatch(
                task_id=TASK,
                allocation_id=f"{TASK}.1",
                worker_id="w",
                source="task",
                offset=start,
                lines=log_lines,
            )
        )


def main(size: Size) -> None:
    if size.database_url:
        measure(size.lines, size.database_url, size.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(size.lines, f"sqlite:///{folder}/metrics.db", size.rounds)


class Filled(NamedTuple):
    """What it took to store lines."""

    spent: float
    """Seconds."""
    worked: float
    """Seconds of a processor."""
    raw: int
    """Bytes of the batches as they come."""


def fill(lines: int, database: Database) -> Filled:
    """Decode, fold and store so many lines of one task."""
    state, snapshot = State(), Snapshot("metrics", State)
    spent, worked, raw, position = 0.0, 0.0, 0, 0
    waiting: list[Any] = []
    read = RULES.decode[subjects.LOGS]

    def commit() -> None:
        with database.engine.begin() as connection:
            records = {("sources", key): value for key, value in state.sources.items()}
            snapshot.save(connection, records, {subjects.LOGS: position})
            project(connection, records, waiting)
        waiting.clear()

    for position, body in enumerate(batches(lines), 1):
        raw += len(body)
        began, busy = time.perf_counter(), time.process_time()
        folded = read(Stored(subjects.logs(TASK), position, body), subjects.LOGS)
        list(RULES.evolve(state, folded))
        waiting.append(folded)
        if len(waiting) == COMMIT:
            commit()
        spent += time.perf_counter() - began
        worked += time.process_time() - busy
    began, busy = time.perf_counter(), time.process_time()
    commit()
    spent += time.perf_counter() - began
    worked += time.process_time() - busy
    return Filled(spent, worked, raw)


def measure(lines: int, url: str, rounds: int) -> None:
    database = open_database(url, "metrics")
    spent, worked, raw = fill(lines, database)
    alone = f"{lines / worked:,.0f} lines per second of a processor"
    row(f"{lines:,} lines decoded, folded and stored, one thread", lines / spent, "lines/s", "", alone)
    with database.engine.connect() as connection:
        stored = connection.execute(sa.select(sa.func.sum(CHUNKS.c.stored))).scalar_one()
    row("stored", stored / lines, "bytes/line", "", f"{stored / raw:.3f} of the batches as they come")

    def measured(measure: str, query: LogPage, aim: str) -> None:
        ask(rounds, measure, lambda: searched(query), aim)

    def searched(query: LogPage) -> tuple[int, int]:
        """Request until the page is full or everything was searched, as the UI does."""
        line_count, answers = 0, 0
        while True:
            page = database.read_sync(partial(log_page, query=query))
            line_count, answers = line_count + len(page["lines"]), answers + 1
            if not page["more"] or line_count >= query.limit:
                return line_count, answers
            query = msgspec.structs.replace(query, after_id=page["cursor"])

    page = LogPage(task_id=TASK, limit=200)
    replace = msgspec.structs.replace
    measured("first page of 200", page, "< 200 ms")
    measured("last page", replace(page, descending=True), "< 200 ms")
    measured("page at the middle, by number", replace(page, from_number=lines // 2), "< 200 ms")
    measured("filtered page: errors of rank 3", replace(page, levels=["ERROR"], ranks=[3]), "< 300 ms")
    measured("text in one line of all", replace(page, text=NEEDLE), "< 1 s")
    measured("text in one line of all, common digits", replace(page, text=DIGITS), "< 1 s")
    measured("frequent text", replace(page, text="checkpoint"), "< 1 s")
    measured("text that is nowhere", replace(page, text="Segmentation fault"), "< 1 s")
    measured("frequent pattern", replace(page, regex=r"loss=0\.9\d+ lr"), "< 1 s")
    measured("pattern in one line of all", replace(page, regex=r"NCCL .* rank \d+"), "")

    def summary() -> tuple[int, int]:
        return database.read_sync(lambda connection: log_fields(connection, LogFields(TASK))["lines"]), 1

    ask(rounds, "summary", summary, "< 200 ms")
    database.close()


def ask(rounds: int, measure: str, work: Callable[[], tuple[int, int]], aim: str) -> None:
    times, spent, counts = [], list[float](), (0, 0)
    for _ in range(rounds):
        began, busy = time.perf_counter(), time.process_time()
        counts = work()
        times.append((time.perf_counter() - began) * 1000)
        spent.append((time.process_time() - busy) * 1000)
        if sum(times) > 20_000:
            break
    lines, answers = counts
    more = f"p95 {percentile(times, 0.95):,.0f} ms; {median(spent):,.0f} ms of a processor"
    more += f"; {lines:,} lines in {answers} answers" if answers > 1 else f"; {lines:,} lines"
    row(measure, median(times), "ms", aim, more)


BENCHMARK = Benchmark(main, Size(), quick=Size(lines=3000, rounds=1), positional=("lines", "database_url"))

if __name__ == "__main__":
    BENCHMARK.run()

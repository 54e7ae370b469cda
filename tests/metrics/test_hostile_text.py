"""What scripts and workers write as names and numbers stops no database, whatever its kind."""

import json

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.queries import LogPage
from tests.metrics.world import lines, reports, series

LONG = "".join(chr(0x4E00 + (number * 7919) % 20000) for number in range(4000))
"""No database makes this short enough for its index."""
NAMES = {"nul": "a\0b", "long": LONG, "empty": "", "newline": "a\nb", "huge": "x" * 2_000_000}
NUMBERS = {"wide": 2**70, "low": -(2**70), "byte": 2**63}
TIMES = {"far": 1e300, "before": -1e300, "year 10000": 2.6e11}


def cases(fields, values):
    return {f"{field} {name}": {field: value} for field in fields for name, value in values.items()}


LOGS = (
    cases(("task_id", "allocation_id", "worker_id", "source"), NAMES)
    | cases(("offset",), NUMBERS)
    | cases(("stdtype", "level", "text"), NAMES)
    | cases(("rank",), NUMBERS)
    | cases(("at",), TIMES)
)
REPORTS = (
    cases(("group", "name", "searcher_metric", "sender"), NAMES)
    | cases(("step",), NUMBERS)
    | cases(("when",), TIMES)
    | cases(("value",), NUMBERS | NAMES)
)


def encoded(body):
    """As it may lie there: numbers that the codec itself would not write, too."""
    return json.dumps(body).encode()


def log_lines(changes):
    batch = msgspec.to_builtins(lines("hello"))
    at, stdtype, level, rank, text = batch["lines"][0]
    line = {"at": at, "stdtype": stdtype, "level": level, "rank": rank, "text": text}
    batch |= {name: value for name, value in changes.items() if name in batch}
    line |= {name: value for name, value in changes.items() if name in line}
    return batch | {"lines": [list(line.values())]}


def report(changes):
    fields = {"group": "g", "name": "loss", "step": 1, "when": 5.0, "value": 1.0} | changes
    changed_series = series(fields["group"], [fields["step"]], {fields["name"]: [fields["value"]]})
    changed_series = msgspec.structs.replace(changed_series, at=[fields["when"]])
    batch = msgspec.to_builtins(reports(changed_series, number=2))
    return batch | {name: value for name, value in changes.items() if name in batch}


def test_lines_of_any_kind_are_stored_or_skipped_and_those_behind_them_come(world, tables):
    for changes in LOGS.values():
        batch = log_lines(changes)
        world.put(subjects.LOGS, subjects.logs(batch["task_id"]), encoded(batch))
    world.add(lines("behind", task="2.b")).fold()
    tables.save(world)
    page = tables.ask(LogPage(task_id="2.b", limit=5))
    assert [line["text"] for line in page["lines"]] == ["behind"]
    # The names that came through are those that a database can look up by.
    assert len(tables.state()[0].sources) == len(world.state.sources) < len(LOGS)


@pytest.mark.parametrize("field", ["task_id", "allocation_id", "worker_id", "source"])
def test_names_that_no_database_looks_up_are_skipped(world, field):
    for name in ("a\0b", LONG):
        batch = log_lines({field: name})
        world.put(subjects.LOGS, subjects.logs(batch["task_id"]), encoded(batch))
    world.fold()
    assert not world.state.sources


def test_reports_of_any_kind_are_stored_or_skipped_and_those_behind_them_come(world, tables):
    for changes in REPORTS.values():
        world.put(subjects.REPORTS, subjects.reports(1), encoded(report(changes)))
    behind = reports(series("training", [1], {"loss": [0.5]}), trial=2, experiment=2)
    world.add(behind).fold()
    tables.save(world)
    assert tables.state()[0].trials[2].run == 1

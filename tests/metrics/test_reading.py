"""Whatever lies in a data stream, the service goes on."""

import itertools

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.envelope import Unknown
from services.kit.log import Stored
from services.metrics.logs.reading import read_logs
from services.metrics.logs.tables import LINES_PER_BATCH
from services.metrics.reading import read_reports
from tests.metrics.world import lines, reports, series, training


def read(message, subject):
    body = message if isinstance(message, bytes) else msgspec.json.encode(message)
    function = read_reports if subject.startswith("reports.") else read_logs
    stream = subjects.REPORTS if function is read_reports else subjects.LOGS
    return function(Stored(subject, 7, body), stream)


def test_a_batch_carries_who_wrote_it_and_its_id():
    recorded = read(reports(training([1], a=[1]), trial=3, run=2, number=9), "reports.3.metrics")
    assert (recorded.position, recorded.id, recorded.actor, recorded.stream) == (
        7,
        "report-3-2-9",
        "trial:3",
        "REPORTS",
    )
    recorded = read(lines("x", offset=44), "logs.1.a")
    assert (recorded.id, recorded.actor) == ("log-1.a.1-w1-task-44", "worker:w1")


@pytest.mark.parametrize("subject", ["reports.1.metrics", "logs.1.a"])
@pytest.mark.parametrize("levels", [200, 5000])
def test_what_nests_too_deep_is_skipped(subject, levels):
    deep = b"[" * levels + b"]" * levels
    whole = msgspec.json.encode(reports(training([1], a=[1])) if "reports" in subject else lines("x"))
    at = b'"a":[1]' if "reports" in subject else b'"lines":['
    damaged = whole.replace(at, b'"a":[' + deep + b"]" if "reports" in subject else at + deep + b",")
    assert damaged != whole
    assert isinstance(read(damaged, subject).event, Unknown)


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[]", b"{}", b'{"trial_id": "x"}', b'"\xff"', b"\x00" * 9]
)
@pytest.mark.parametrize("subject", ["reports.1.metrics", "logs.1.a"])
def test_damage_is_skipped(body, subject):
    assert isinstance(read(body, subject).event, Unknown)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *itertools.product(["trial_id", "experiment_id"], [0, -1, 2**31, 2**80]),
        *itertools.product(["run", "number"], [-1, 2**31, 2**80]),
    ],
)
def test_numbers_out_of_range_are_skipped(field, value):
    batch = msgspec.structs.replace(reports(training([1], a=[1])), **{field: value})
    assert isinstance(read(batch, subjects.reports(batch.trial_id)).event, Unknown)


def test_a_script_speaks_of_its_own_trial_only():
    assert isinstance(read(reports(training([1], a=[1]), trial=2), subjects.reports(1)).event, Unknown)
    assert isinstance(read(lines("x", task="2.b"), subjects.logs("1.a")).event, Unknown)


def test_log_batches_fit_into_their_ids():
    assert not isinstance(read(lines(*["x"] * LINES_PER_BATCH), "logs.1.a").event, Unknown)
    assert isinstance(read(lines(*["x"] * (LINES_PER_BATCH + 1)), "logs.1.a").event, Unknown)


def test_groups_lose_what_no_table_can_hold():
    recorded = read(reports(series("a\0b", [1], {"x\0": [1]})), "reports.1.metrics")
    assert recorded.event.batch.series[0].group == "a\u2400b"
    assert list(recorded.event.batch.series[0].columns) == ["x\0"]

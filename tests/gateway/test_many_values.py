"""What the loop itself reads is bounded by its values too: the shortest of them are most work a byte."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_contracts.queries import ReportVerdict
from services.web import body_limits
from services.web.body_limits import PLAIN_VALUES, REPORT_VALUES, ValueCounter
from tests.fixtures.processor_speed import least_spent_s
from tests.gateway import stories as story

RUN = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1}
REPORT = "/api/v1/trials/1/training_metrics"
KILL, NOTES = "/api/v1/experiments/kill", "/api/v1/projects/1/notes"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab,[{"\\é\n'),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(alphabet='a,{"\\'), inner, max_size=5)
    ),
    max_leaves=30,
)


def values_in(value):
    """The same of what was parsed: a comma between two, and a bracket around."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(values_in, value.values()))
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(map(values_in, value))
    return 0


@given(json_values, st.lists(st.integers(1, 7), min_size=1, max_size=40))
def test_values_are_counted_wherever_the_parts_end_and_whatever_texts_hold(value, sizes):
    body = json.dumps(value, ensure_ascii=False).encode()
    counted, at = ValueCounter(), 0
    for size in [*sizes, len(body)]:
        counted.feed(body[at : at + size])
        at += size
    assert counted.count == values_in(value)


def test_what_is_no_json_is_counted_as_well():
    counted = ValueCounter()
    for part in (b'"a', b'\\"', b",[{", b'"', b",,,", b'"\\', b'\\"', b","):
        counted.feed(part)
    assert counted.count == 4


@pytest.mark.parametrize("unit", [b'\\"', b'"\\', b"\\\\", b'\\"a', b'"', b'\\u0022"'])
@pytest.mark.parametrize("start", [b"", b'"', b'{"a":"', b'"\\'])
def test_whatever_a_part_holds_it_is_counted_once_through(start, unit):
    """Each quote of 64 KiB of escaped ones was once the beginning of a search to their end: a minute."""

    def count():
        counter = ValueCounter()
        for _ in range(16):
            counter.feed(start + unit * (2**16 // len(unit)))

    assert least_spent_s(count, 0.2) < 0.2


@pytest.fixture
def gateway(gateway):
    gateway.log_in("admin")
    gateway.apply(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))
    gateway.peers.values[ReportVerdict] = lambda query: ""
    return gateway


def sent(gateway, method, path, value):
    return gateway.send(method, path, json.dumps(value, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("method", "path", "value", "most"),
    [
        ("POST", KILL, {"experimentIds": ["x"] * (PLAIN_VALUES + 1)}, PLAIN_VALUES),
        ("PUT", NOTES, {"notes": [{}] * 1_000_000}, PLAIN_VALUES),
        ("POST", REPORT, {**RUN, "metrics": {"batchMetrics": [{}] * REPORT_VALUES}}, REPORT_VALUES),
    ],
)
def test_what_holds_too_many_is_refused_unread(gateway, longest_turn, method, path, value, most):
    answer = sent(gateway, method, path, value)
    assert answer.status_code == 413
    assert f"at most {most:,} values" in answer.json()["error"]["error"]
    longest_turn.check()


@pytest.mark.parametrize(
    ("method", "path", "value"),
    [
        ("POST", KILL, {"experimentIds": ["x"] * (PLAIN_VALUES - 10)}),
        ("PUT", NOTES, {"notes": [{}] * (PLAIN_VALUES // 2 - 10)}),
        ("PUT", NOTES, {"notes": [{"contents": "a, b [" * 600_000}]}),
        ("POST", REPORT, {**RUN, "metrics": {"avgMetrics": {f"n{n}": n * 1.1 for n in range(100_000)}}}),
        ("POST", REPORT, {**RUN, "metrics": {"batchMetrics": [{"x": 1.0}] * (REPORT_VALUES // 2 - 10)}}),
        ("POST", REPORT, {**RUN, "metrics": {"batchMetrics": [1] * (REPORT_VALUES - 10)}}),
        ("POST", REPORT, {**RUN, "metrics": {"avgMetrics": {"a": "\1" * 1_900_000}}}),
    ],
)
def test_what_holds_as_many_as_it_may_does_not_hold_up_the_loop(gateway, longest_turn, method, path, value):
    answer = sent(gateway, method, path, value)
    assert answer.status_code < 500, answer.text[:200]
    longest_turn.check()


def test_what_another_process_reads_is_not_counted():
    large = (body_limits.CREATE_PATH, "/api/v1/commands", "/proxy/1/x")
    assert [body_limits._max_values(path) for path in large] == [0, 0, 0]
    assert re.fullmatch(body_limits.REPORT_PATHS, REPORT)

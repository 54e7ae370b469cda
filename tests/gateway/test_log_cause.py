"""The cause of a failure, as a page shows it."""

import pytest

from det_contracts import queries
from services.catalogue.peers import LogLine
from services.rest_routes.present import cause
from tests.fixtures.processor_speed import least_spent_s
from tests.gateway.talking import say

PATH = "/api/v1/trials/1/logs/cause"
TRACE = [
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 20, in <module>',
    "    main()",
    '  File "/job/model/attention.py", line 88, in forward',
    "    scores = q @ k",
    '  File "/opt/lib/python3.11/site-packages/torch/functional.py", line 9, in matmul',
    "    return _matmul(a, b)",
    "\x1b[31mtorch.OutOfMemoryError: CUDA out of memory.\x1b[0m Tried to allocate 2.50 GiB",
    "left over",
]


def of(texts, first=1):
    return [
        LogLine(number, "1.a", "1.a.1", "w", 5.0, None, 1, "task", "stderr", text, number)
        for number, text in enumerate(texts, first)
    ]


def test_a_traceback_is_read_to_its_last_line_and_to_the_place_in_the_users_code():
    failure_cause = cause.find_cause(of(TRACE, 10), of(["step 411", "WARNING a long sequence", "step 412"]))
    assert failure_cause.first.number == 10
    assert failure_cause.error_line.text == TRACE[7]
    assert failure_cause.location == cause.CodeLocation("/job/model/attention.py", 88, "forward")
    assert failure_cause.before.text == "WARNING a long sequence"
    assert cause.describe_error(cause.strip_formatting(failure_cause.error_line.text)) == "GPU memory ran out"


def test_what_pytorch_puts_before_the_lines_of_a_rank_is_left_out():
    failure_cause = cause.find_cause(of([f"[rank1]: {line}" if line else line for line in TRACE]), [])
    assert failure_cause.location == cause.CodeLocation("/job/model/attention.py", 88, "forward")
    assert cause.short_line(failure_cause.error_line, "")["log"].startswith("torch.OutOfMemoryError")


def test_of_several_that_led_to_one_another_the_last_says_what_it_was():
    chained = [
        "ERROR: training failed", *TRACE[:3], "KeyError: 'x'", "",
        "During handling of the above exception, another exception occurred:", "",
        TRACE[0], '  File "/job/data.py", line 7, in load', "    raise", "DataError: no 'x' in row 3",
    ]  # fmt: skip
    failure_cause = cause.find_cause(of(chained), of(["step 1", "step 2"]))
    assert (failure_cause.first.text, failure_cause.error_line.text) == (chained[0], chained[-1])
    assert failure_cause.location == cause.CodeLocation("/job/data.py", 7, "load")
    assert failure_cause.before.text == "step 2"
    assert cause.describe_error(chained[-1]) == "DataError"


@pytest.mark.parametrize(
    ("lines", "error_line"),
    [
        (["ERROR: it is over", "bye"], "ERROR: it is over"),
        (TRACE[:3], TRACE[2]),
        ([TRACE[0]], TRACE[0]),
        ([TRACE[0], "", "  ", "\x1b[0m"], "\x1b[0m"),
    ],
)
def test_what_is_cut_short_or_no_traceback_is_no_trouble(lines, error_line):
    failure_cause = cause.find_cause(of(lines), [])
    assert failure_cause.error_line.text == error_line
    assert failure_cause.before is None
    assert cause.describe_error("1 is wrong") == ""


@pytest.mark.parametrize("unit", ["A", "A.", "_", "cuda", "CUDA out of memor", "ErrorX", "no such file "])
def test_no_line_takes_longer_than_it_is_long(unit):
    """A line of 32 KiB that a script printed once took ten seconds, of everybody."""
    (line,) = of([unit * (32_768 // len(unit))])
    assert cause.describe_error(cause.strip_formatting(line.text)) == ""
    spent_s = least_spent_s(lambda: cause.describe_error(cause.strip_formatting(line.text)), 0.1)
    assert spent_s < 0.1


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("a.b.DataError: x", "DataError"),
        ("DataError", "DataError"),
        ("_pickle.PicklingError: x", "PicklingError"),
        ("in Errors", ""),
        ("cuda 11, cuda 12: out of memory", "GPU memory ran out"),
    ],
)
def test_an_error_is_called_by_its_class_or_by_what_it_means(line, name):
    assert cause.describe_error(line) == name


def test_the_cause_has_its_rank_its_place_and_what_led_to_it(talking):
    talking.run(say(talking, 0, "fine", "odd", level="WARNING", rank=1))
    talking.run(say(talking, 1, *TRACE, rank=1))
    talking.run(say(talking, 2, "lost rank 1", level="ERROR", rank=0))
    ids = {line["result"]["log"].rstrip("\n"): line["result"]["id"] for line in talking.lines(PATH[:-6])}
    rank = {"rank": 1, "worker_id": "w-1", "last_at": 6.0, "failed_at": 5.0, "line": int(ids[TRACE[0]])}
    other = {"rank": 0, "worker_id": "w-1", "last_at": 7.0, "failed_at": None, "line": None}
    payload = {"allocation_id": "1.r1.1", **rank, "ranks": [other, rank]}
    talking.peers.values[queries.LogCause] = payload
    answer = talking.get(PATH)["cause"]
    assert (answer["rankId"], answer["agentId"], answer["words"]) == (1, "w-1", "GPU memory ran out")
    assert (answer["first"]["id"], answer["said"]["id"]) == (ids[TRACE[0]], ids[TRACE[7]])
    assert answer["said"]["log"].startswith("torch.OutOfMemoryError: CUDA out of memory. Tried")
    assert answer["place"] == {"file": "/job/model/attention.py", "line": 88, "function": "forward"}
    assert answer["before"]["log"] == "odd"
    assert [entry["rankId"] for entry in answer["ranks"]] == [0, 1]
    assert answer["ranks"][0]["failedTimestamp"] is None
    assert talking.get("/api/v1/tasks/1.r1/logs/cause")["cause"] == answer


def test_there_may_be_none_or_none_any_more(talking):
    talking.peers.values[queries.LogCause] = None
    assert talking.get(PATH) == {"cause": None}
    gone = {"allocation_id": "1.r1.1", "rank": None, "worker_id": "w-1", "line": 5, "ranks": []}
    talking.peers.values[queries.LogCause] = gone
    assert talking.get(PATH) == {"cause": None}
    talking.refused(404, "GET", "/api/v1/tasks/unknown/logs/cause")

from __future__ import annotations

import json

import pytest

from tests.sdk.fake_gateway import Lines

LOGS = "/api/v1/trials/3/logs"
END = "Trial log stream ended. To reopen log stream, run: det trial logs -f 3\n"


def line(number):
    return {"id": number, "timestamp": f"2023-08-01T12:00:0{number}Z", "message": f"line {number}\n"}


@pytest.fixture
def logging(master):
    master.answer("GET", LOGS, Lines([{"result": line(number)} for number in (1, 2)]))
    master.answer("GET", "/api/v1/trials/3", {"trial": {"state": "STATE_COMPLETED"}})
    return master


def test_lines_come_as_the_master_renders_them(logging, det):
    assert det("t", "logs", "3") == (0, f"line 1\nline 2\n{END}", "")
    assert logging.calls[-1].query == {}


def test_json_keeps_stdout_to_itself(logging, det):
    result = det("t", "logs", "3", "--json")
    assert [json.loads(text) for text in result.out.splitlines()] == [line(1), line(2)]
    assert result.err == END


def test_filters_become_parameters(logging, det):
    words = [
        "--agent-id",
        "a1",
        "--agent-id",
        "a2",
        "--container-id",
        "c",
        "--rank-id",
        "0",
        "--source",
        "task",
    ]
    words += ["--stdtype", "stdout", "--stdtype", "stderr", "--level", "ERROR"]
    words += ["--timestamp-after", "2023-08-01T14:00:00+02:00", "--timestamp-before", "2023-08-01T13:00:00Z"]
    det("t", "logs", "3", *words)
    assert logging.calls_to("GET", LOGS)[-1].query == {
        "agentIds": ["a1", "a2"],
        "containerIds": ["c"],
        "rankIds": ["0"],
        "sources": ["task"],
        "stdtypes": ["stdout", "stderr"],
        "levels": ["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"],
        "timestampAfter": ["2023-08-01T12:00:00.000000Z"],
        "timestampBefore": ["2023-08-01T13:00:00.000000Z"],
    }
    det("t", "logs", "3", "--level", "UNSPECIFIED")
    assert logging.calls_to("GET", LOGS)[-1].query == {}


def test_lines_are_searched_for_text_or_a_pattern(logging, det):
    det("t", "logs", "3", "--search", "loss 5")
    assert logging.calls_to("GET", LOGS)[-1].query == {"searchText": ["loss 5"]}
    det("t", "logs", "3", "--regex", "loss .*5$", "--tail", "2")
    assert logging.calls_to("GET", LOGS)[-1].query["regex"] == ["loss .*5$"]


def test_head(logging, det):
    det("t", "logs", "3", "--head", "10")
    assert logging.calls[-1].query == {"limit": ["10"]}


def test_tail_is_read_backwards(logging, det):
    assert det("t", "logs", "3", "--tail", "2").out == f"line 2\nline 1\n{END}"
    assert logging.calls[-1].query == {"limit": ["2"], "orderBy": ["ORDER_BY_DESC"]}


@pytest.mark.parametrize("option", ["--head", "--tail"])
def test_no_lines_at_all_need_no_question(logging, det, option):
    assert det("t", "logs", "3", option, "0").out == END
    assert logging.calls_to("GET", LOGS) == []


def test_follow(logging, det):
    assert det("t", "logs", "-f", "3").out == f"line 1\nline 2\n{END}"
    assert logging.calls_to("GET", LOGS)[-1].query == {"follow": ["true"]}


@pytest.mark.parametrize(
    "options",
    [
        ["-f", "--head", "1"],
        ["-f", "--tail", "1"],
        ["--head", "1", "--tail", "1"],
        ["--head", "-1"],
        ["--level", "LOUD"],
        ["--timestamp-after", "yesterday"],
        ["--search", "a", "--regex", "b"],
    ],
)
def test_options_that_make_no_sense(logging, det, options):
    assert det("t", "logs", "3", *options).status == 2


def test_an_unknown_trial(master, det):
    result = det("t", "logs", "9")
    assert result.status == 1
    assert "not found" in result.err


def test_a_log_that_does_not_fit_on_the_disk_needs_no_traceback(master, start_det):
    # Longer than what Python keeps before it writes, so that the command itself meets the full disk.
    master.answer("GET", LOGS, Lines([{"result": {**line(1), "message": "x" * 1000}}] * 100))
    with open("/dev/full", "w") as full:
        process = start_det("t", "logs", "3", stdout=full)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error.startswith("Failed to show the log of a trial: [Errno 28] No space left on device\n")
    assert "Traceback" not in error

"""Logs, read and followed (REST spec, section 6; scheduling spec, section 11)."""

from __future__ import annotations

import asyncio
import json

import pytest

from det_contracts import queries, subjects
from services.live import follow
from tests.gateway import stories as story
from tests.gateway.talking import say

PATH = "/api/v1/trials/1/logs"


def _texts(lines):
    return [line["result"]["log"] for line in lines]


def test_a_line_has_its_parts_and_their_rendering(talking):
    talking.run(say(talking, 0, "loss is 0.1", level="INFO", rank=2))
    talking.run(say(talking, 1, "bare"))
    first, second = (line["result"] for line in talking.lines(PATH))
    container = first.pop("containerId")
    assert first == {
        "id": "4096",
        "timestamp": "2023-11-14T22:13:20.250000Z",
        "message": f"[2023-11-14T22:13:20.250000Z] {container[:8]} [rank=2] || INFO: loss is 0.1\n",
        "level": "LOG_LEVEL_INFO",
        "trialId": 1,
        "allocationId": "1.r1.1",
        "agentId": "w-1",
        "rankId": 2,
        "log": "loss is 0.1\n",
        "source": "task",
        "stdtype": "stdout",
    }
    assert second["message"] == f"[2023-11-14T22:13:20.250000Z] {container[:8]} || bare\n"
    assert second["level"] == "LOG_LEVEL_UNSPECIFIED"
    assert second["rankId"] is None


def test_a_log_longer_than_a_page_is_read_whole_or_up_to_a_limit(talking):
    for part in range(3):
        talking.run(say(talking, part, *(f"{part}-{n}" for n in range(700))))
    assert len(talking.lines(PATH)) == 2100
    assert len(talking.lines(PATH, limit=1500)) == 1500
    newest = _texts(talking.lines(PATH, limit=3, orderBy="ORDER_BY_DESC"))
    assert newest == ["2-699\n", "2-698\n", "2-697\n"]
    everything = _texts(talking.lines(PATH))
    assert _texts(talking.lines(PATH, orderBy="ORDER_BY_DESC")) == everything[::-1]


def test_filters_are_handed_on(talking):
    questions = []
    talking.peers.values[queries.LogPage] = lambda query: (
        questions.append(query) or {"lines": [], "through": 0}
    )
    talking.lines(
        PATH,
        agentIds="w-1",
        rankIds=[-1, 2],
        levels=["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"],
        stdtypes="stderr",
        sources="agent",
        timestampBefore="2023-11-14T22:13:20.123456789Z",
        timestamp_after="2023-11-14T23:13:20+01:00",
        searchText="x",
    )
    (query,) = questions
    assert query.worker_ids == ["w-1"]
    assert query.ranks == [-1, 2]
    assert query.levels == ["ERROR", "CRITICAL"]
    assert query.before_at == 1_700_000_000.123456
    assert query.after_at == 1_700_000_000.0
    assert (query.stdtypes, query.sources, query.text) == (["stderr"], ["agent"], "x")


def test_containers_are_known_by_allocation_and_worker(talking):
    questions = []
    talking.peers.values[queries.LogPage] = lambda query: (
        questions.append(query) or {"lines": [], "through": 0}
    )
    (task,) = talking.get("/tasks").values()
    talking.lines(PATH, containerIds=task["resources"][0]["container_id"])
    talking.lines(PATH, containerIds="unknown")
    assert [(query.allocation_ids, query.worker_ids) for query in questions] == [
        (["1.r1.1"], ["w-1"]),
        (["unknown"], []),
    ]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"limit": -1}, "Limit must be >= 0"),
        ({"limit": 5, "follow": "true"}, "Limit cannot be specified when following"),
        ({"follow": "true", "orderBy": "ORDER_BY_DESC"}, "ascending"),
        ({"timestampAfter": "yesterday"}, "timestamp_after must be a time"),
    ],
)
def test_questions_that_make_no_sense_are_400(talking, params, message):
    assert message in talking.refused(400, "GET", PATH, params=params)
    talking.refused(404, "GET", "/api/v1/trials/9/logs")


def _follow(gateway, script, **params):
    """Follow the log while `script` runs beside it; returns the lines."""

    async def both():
        reading = asyncio.create_task(gateway.client.get(PATH, params={"follow": "true", **params}))
        await script()
        answer = await reading
        assert answer.status_code == 200
        return [json.loads(line) for line in answer.text.splitlines()]

    return gateway.run(both())


async def _feeds(gateway, count):
    """Wait until so many readers of LOGS have begun."""
    while gateway.feeds < count:
        await asyncio.sleep(0)


@pytest.fixture
def watched(talking):
    """Counts how often LOGS was opened for reading."""
    talking.feeds = 0
    read = talking.journal.read

    def counted(stream, **options):
        talking.feeds += stream == subjects.LOGS
        return read(stream, **options)

    talking.journal.read = counted
    return talking


def test_following_goes_from_stored_lines_to_live_ones_and_ends_with_the_trial(watched):
    watched.run(say(watched, 0, "old"))

    async def script():
        await _feeds(watched, 1)
        await say(watched, 1, "new", "newer")
        await say(watched, 0, "of another task", task="1.r2")
        await say(watched, 2, "last")
        await watched.append(story.allocation_ended(1), story.trial_ended(1))

    lines = _follow(watched, script)
    assert _texts(lines) == ["old\n", "new\n", "newer\n", "last\n"]
    ids = [int(line["result"]["id"]) for line in lines]
    assert ids == [4096, 2 * 4096, 2 * 4096 + 1, 4 * 4096]
    assert _texts(watched.lines(PATH)) == _texts(lines)


def test_lines_that_the_metrics_service_has_not_read_yet_are_followed_too(watched):
    watched.run(say(watched, 0, "stored"))
    watched.run(say(watched, 1, "in the log only"))
    watched.stored_through = 1

    async def script():
        await watched.append(story.allocation_ended(1), story.trial_ended(1))

    assert _texts(_follow(watched, script)) == ["stored\n", "in the log only\n"]


def test_following_a_trial_that_is_over_ends_at_once(watched):
    watched.run(say(watched, 0, "all there is"))
    watched.apply(story.allocation_ended(1), story.trial_ended(1))

    async def script():
        return None

    assert _texts(_follow(watched, script)) == ["all there is\n"]
    assert watched.refused(400, "GET", PATH, params={"follow": "1", "limit": "1"})


def test_the_log_of_a_trial_that_is_over_is_whole_before_it_is_stored(watched):
    watched.run(say(watched, 0, "stored"))
    watched.run(say(watched, 1, "in the log only"))
    watched.stored_through = 1
    assert _texts(watched.lines(PATH)) == ["stored\n"]
    watched.apply(story.allocation_ended(1), story.trial_ended(1))
    assert _texts(watched.lines(PATH)) == ["stored\n", "in the log only\n"]


def test_a_batch_that_was_shipped_twice_is_shown_once(watched):
    async def script():
        await _feeds(watched, 1)
        await say(watched, 7, "once")
        await say(watched, 7, "once")
        await say(watched, 8, "after")
        await watched.append(story.allocation_ended(1), story.trial_ended(1))

    assert _texts(_follow(watched, script)) == ["once\n", "after\n"]


def test_live_lines_pass_the_same_filters(watched):
    async def script():
        await _feeds(watched, 1)
        await say(watched, 0, "fine", level="INFO")
        await say(watched, 1, "broken", level="ERROR")
        await say(watched, 2, "plain")
        await watched.append(story.allocation_ended(1), story.trial_ended(1))

    assert _texts(_follow(watched, script, levels="LOG_LEVEL_ERROR")) == ["broken\n"]


def test_a_reader_who_logs_out_is_cut_off(watched, monkeypatch):
    monkeypatch.setattr(follow, "RECHECK_S", 0.01)
    token = watched.client.headers["Authorization"]

    async def script():
        await _feeds(watched, 1)
        await watched.client.post("/api/v1/auth/logout", headers={"Authorization": token})

    lines = _follow(watched, script)
    assert lines[-1]["error"]["http_code"] == 401


def test_a_task_has_the_same_log(watched):
    watched.run(say(watched, 0, "hello"))
    watched.apply(story.allocation_ended(1), story.trial_ended(1))
    for params in ({}, {"follow": "true"}):
        (line,) = watched.lines("/api/v1/tasks/1.r1/logs", **params)
        assert line["result"]["taskId"] == "1.r1"
        assert "trialId" not in line["result"]
    assert watched.refused(404, "GET", "/api/v1/tasks/1.none/logs") == "task '1.none' not found"
    assert watched.refused(404, "GET", "/api/v1/tasks/none/logs") == "task 'none' not found"


def shown(gateway, **params):
    return gateway.get(f"{PATH}/page", **params)


def test_a_page_goes_on_from_a_line_in_both_directions(talking):
    talking.run(say(talking, 0, *map(str, range(10)), level="ERROR", rank=3))
    page = shown(talking, limit=4)
    assert [line["log"] for line in page["lines"]] == ["0", "1", "2", "3"]
    assert page["more"] is True
    assert page["cursor"] == page["lines"][-1]["id"]
    assert page["lines"][0] == {
        "id": "4096", "number": 0, "timestamp": "2023-11-14T22:13:20.250000Z", "level": "ERROR", "rankId": 3,
        "allocationId": "1.r1.1", "agentId": "w-1", "source": "task", "stdtype": "stdout", "log": "0",
    }  # fmt: skip
    rest = shown(talking, afterId=page["cursor"])
    assert [line["log"] for line in rest["lines"]] == ["4", "5", "6", "7", "8", "9"]
    assert rest["more"] is False
    back = shown(talking, beforeId=page["cursor"], orderBy="ORDER_BY_DESC", limit=2)
    assert [line["log"] for line in back["lines"]] == ["2", "1"]
    assert [line["log"] for line in shown(talking, regex="^[13]$")["lines"]] == ["1", "3"]


def test_a_page_marks_what_a_pattern_finds_as_browsers_count(talking):
    talking.run(say(talking, 0, "\U0001f600 loss 12, loss 3", "none", "xx"))
    hits = [line["hits"] for line in shown(talking, mark=r"loss \d+|x*")["lines"]]
    assert hits == [[[3, 10], [12, 18]], [], [[0, 2]]]
    assert "RE2" in talking.refused(400, "GET", f"{PATH}/page", params={"mark": "("})


def test_a_page_cuts_long_lines_and_says_so(talking):
    talking.run(say(talking, 0, "x" * 20_000))
    (line,) = shown(talking)["lines"]
    assert (len(line["log"]), line["length"]) == (8192, 20_000)
    (line,) = shown(talking, whole="true")["lines"]
    assert len(line["log"]) == 20_000
    assert "length" not in line


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"limit": 1001}, "between 1 and 1000"),
        ({"limit": 0}, "between 1 and 1000"),
        ({"regex": "a("}, "'a(' is not a regular expression (RE2): missing )"),
        ({"beforeId": 5}, "ORDER_BY_DESC"),
        ({"afterId": 5, "orderBy": "ORDER_BY_DESC"}, "ascending"),
    ],
)
def test_pages_that_make_no_sense_are_400(talking, params, message):
    for path in ("trials/1", "tasks/1.r1"):
        assert message in talking.refused(400, "GET", f"/api/v1/{path}/logs/page", params=params)


def test_a_log_is_downloaded_as_it_is_printed(talking):
    for part in range(3):
        talking.run(say(talking, part, *(f"{part}-{n} \x1b[31mred" for n in range(700)), rank=1))
    answer = talking.send("GET", f"{PATH}/download")
    assert answer.headers["content-disposition"] == 'attachment; filename="trial-1.log"'
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    printed = [line["result"]["message"] for line in talking.lines(PATH)]
    assert answer.text == "".join(printed)
    assert len(printed) == 2100
    text = talking.send("GET", "/api/v1/tasks/1.r1/logs/download", params={"searchText": "2-69"}).text
    assert len(text.splitlines()) == 11
    assert "not a regular expression" in talking.refused(
        400, "GET", f"{PATH}/download", params={"regex": "["}
    )
    talking.refused(404, "GET", "/api/v1/tasks/unknown/logs/download")


def test_a_summary_tells_what_lines_differ_in(talking):
    talking.peers.values[queries.LogFields] = {
        "places": [["1.r1.1", "w-1"]], "ranks": [None, 0, 2], "stdtypes": ["stdout"], "sources": ["task"],
        "levels": {"": 3, "ERROR": 1}, "lines": 4, "last_number": 9, "first_error": 2**60,
        "last_line": 2**61, "failing_line": None, "marks": [[7, 1, 0]],
    }  # fmt: skip
    summary = talking.get(f"{PATH}/summary")
    assert summary["levels"] == {"LOG_LEVEL_UNSPECIFIED": 3, "LOG_LEVEL_ERROR": 1}
    assert (summary["rankIds"], summary["withoutRank"]) == ([0, 2], True)
    assert (summary["firstError"], summary["failingLine"]) == (str(2**60), None)
    assert (summary["lines"], summary["lastNumber"]) == (4, 9)
    assert summary["marks"] == [{"part": 7, "errors": 1, "warnings": 0}]
    assert talking.get("/api/v1/tasks/1.r1/logs/summary") == summary


def test_a_followed_log_begins_behind_a_line_and_keeps_to_a_pattern(watched):
    async def script():
        await _feeds(watched, 1)
        await say(watched, 9, "loss 5", "other", "loss 66")
        await watched.append(story.allocation_ended(1), story.trial_ended(1))

    watched.run(say(watched, 0, "loss 1", "loss 2"))
    lines = _follow(watched, script, afterId="4096", regex="loss .$|66")
    assert _texts(lines) == ["loss 2\n", "loss 5\n", "loss 66\n"]

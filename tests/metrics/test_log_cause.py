"""Who failed first, of the ranks of a run: by time, whatever came first into the log."""

from det_contracts.queries import LogCause, LogPage
from services.metrics.logs import cause
from tests.metrics.world import lines

TRACE = ("Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: no")


def text_of(ask, id):
    (line,) = ask(LogPage(task_id="1.a", after_id=id - 1, limit=1))["lines"]
    return line["text"]


def test_the_first_error_in_time_counts_not_the_lowest_rank_nor_the_order_of_arrival(saved):
    ask = saved(
        lines("lost a peer", level="ERROR", rank=0, at=12.0),
        lines("collective failed", level="ERROR", rank=2, at=12.5, worker="w2"),
        lines("step 1", rank=1, at=9.0, worker="w2", offset=1),
        lines(*TRACE, rank=1, at=11.0, worker="w2", offset=2),
        lines("exit code 1", level="ERROR", source="agent", at=10.0),
    )
    log_cause = ask(LogCause("1.a"))
    assert (log_cause["rank"], log_cause["worker_id"], log_cause["failed_at"]) == (1, "w2", 11.0)
    assert text_of(ask, log_cause["line"]) == TRACE[0]
    assert [(rank["rank"], rank["failed_at"], rank["last_at"]) for rank in log_cause["ranks"]] == [
        (0, 12.0, 12.0), (1, 11.0, 11.0), (2, 12.5, 12.5),
    ]  # fmt: skip


def test_an_error_after_which_its_rank_continued_is_not_the_cause(saved):
    ask = saved(
        lines("skipped a batch", level="ERROR", rank=0, at=1.0),
        lines(*(f"step {n}" for n in range(cause.MAX_LINES_AFTER_ERROR + 1)), rank=0, at=2.0, offset=1),
        lines("out of memory", level="ERROR", rank=3, at=5.0, offset=2),
    )
    log_cause = ask(LogCause("1.a"))
    assert log_cause["rank"] == 3
    assert [rank["line"] is None for rank in log_cause["ranks"]] == [True, False]


def test_of_one_failure_the_first_error_counts_and_not_what_it_led_to(saved):
    ask = saved(
        lines("long gone", level="ERROR", rank=0, at=1.0),
        lines(*(f"step {n}" for n in range(cause.MAX_LINES_BETWEEN_ERRORS + 1)), rank=0, at=2.0, offset=1),
        lines(*TRACE, rank=0, at=3.0, offset=2),
        lines("cannot clean up", level="ERROR", rank=0, at=3.5, offset=5),
    )
    assert text_of(ask, ask(LogCause("1.a"))["line"]) == TRACE[0]


def test_a_traceback_with_the_rank_before_it_is_one(saved):
    ask = saved(
        lines("[rank0]: Traceback (most recent call last):", rank=0, at=4.0),
        lines("[rank1]: Traceback (most recent call last):", rank=1, at=3.0, offset=1),
    )
    assert ask(LogCause("1.a"))["rank"] == 1


def test_lines_without_a_rank_and_of_former_runs(saved):
    ask = saved(lines("fine"), lines("was wrong once", level="ERROR", run=1, rank=0, offset=1))
    assert ask(LogCause("1.a"))["rank"] == 0
    saved(lines(*TRACE, run=2, at=7.0))
    log_cause = ask(LogCause("1.a"))
    assert (log_cause["allocation_id"], log_cause["rank"], log_cause["failed_at"]) == ("1.a.2", None, 7.0)
    assert log_cause["ranks"] == [
        {"rank": None, "worker_id": "w1", "last_at": 7.0, "failed_at": 7.0, "line": log_cause["line"]}
    ]


def test_what_the_platform_says_counts_where_the_script_said_nothing(saved):
    ask = saved(lines("step 1"), lines("killed by signal 9", level="ERROR", source="agent", at=6.0))
    assert text_of(ask, ask(LogCause("1.a"))["line"]) == "killed by signal 9"
    assert ask(LogCause("9.z")) is None
    saved(lines("fine", task="2.a"))
    assert ask(LogCause("2.a")) is None


def test_if_every_rank_continued_the_newest_error_is_the_cause(saved):
    ask = saved(
        lines("first", "second", level="ERROR", rank=0),
        lines(*(f"step {n}" for n in range(cause.MAX_LINES_AFTER_ERROR + 1)), rank=0, offset=5),
    )
    assert text_of(ask, ask(LogCause("1.a"))["line"]) == "second"


def test_only_the_end_of_a_long_log_is_looked_at(saved, monkeypatch):
    monkeypatch.setattr(cause, "MAX_LINES", 1000)
    ask = saved(*(lines(*(f"{n}" for n in range(4000)), rank=n % 2, offset=n * 4000) for n in range(9)))
    saved(lines("bad", level="ERROR", rank=1, at=9.0, offset=90_000))
    assert ask(LogCause("1.a"))["failed_at"] == 9.0

"""What the tables answer."""

import pytest

from det_contracts.queries import BestValidation, LogPage, Reports, TrialSummaries
from services.metrics import paging
from tests.metrics.world import lines, reports, series, training, validation


def rows(answer):
    return [
        (r["trial_id"], r["run"], r["group"], r["steps_completed"], r["archived"]) for r in answer["rows"]
    ]


def summary(ask, trial=1):
    return ask(TrialSummaries([trial]))[str(trial)]


def test_reports_come_in_order_of_trial_run_and_steps(told):
    ask = told(
        reports(training([20, 10], loss=[2, 1]), trial=2),
        reports(training([20], loss=[1]), validation([20], loss=[0.5])),
        reports(training([20], loss=[3]), run=2),
    )
    found = ask(Reports(trial_ids=[2, 1]))
    assert rows(found) == [
        (1, 1, "training", 20, True),
        (1, 1, "validation", 20, False),
        (1, 2, "training", 20, False),
        (2, 1, "training", 10, False),
        (2, 1, "training", 20, False),
    ]
    assert not found["more"]
    first = found["rows"][0]
    assert first["metrics"] == {"loss": 1}
    assert first["at"] == 120.0
    assert first["batch_metrics"] is None


def test_the_first_report_of_a_run_archives_what_it_overtakes(told):
    ask = told(
        reports(training([10, 20, 30], loss=[3, 2, 1]), validation([10, 20, 30], loss=[0.3, 0.2, 0.1])),
        reports(training([20, 30], loss=[7, 8]), validation([30], loss=[0.25]), run=2),
    )
    assert rows(ask(Reports(trial_ids=[1], archived=True))) == [
        (1, 1, "training", 10, False),
        (1, 1, "validation", 10, False),
        (1, 1, "training", 20, True),
        (1, 1, "validation", 20, False),
        (1, 1, "training", 30, True),
        (1, 1, "validation", 30, True),
        (1, 2, "training", 20, False),
        (1, 2, "training", 30, False),
        (1, 2, "validation", 30, False),
    ]
    assert len(ask(Reports(trial_ids=[1], archived=False))["rows"]) == 6
    told_ = summary(ask)
    assert told_["summary"]["training"]["loss"] == {
        "count": 3, "sum": 18.0, "min": 3.0, "max": 8.0, "last": 8, "mean": 6.0, "type": "number",
    }  # fmt: skip
    assert told_["best_validation"]["metrics"] == {"loss": 0.2}
    assert told_["latest_validation"]["metrics"] == {"loss": 0.25}
    assert told_["total_batches"] == 30
    assert ask(BestValidation(1, True)) == 0.2


def test_an_overtaken_best_counts_no_more(told):
    ask = told(reports(validation([10, 20], loss=[0.5, 0.1])))
    assert ask(BestValidation(1, True)) == 0.1
    told(reports(validation([20], loss=[0.4]), run=2))
    assert ask(BestValidation(1, True)) == 0.4
    assert summary(ask)["best_validation"]["run"] == 2


def test_the_direction_counts_and_ties_keep_the_older(told):
    ask = told(
        reports(validation([1, 2, 3, 4], acc=[0.5, 0.9, 0.9, 0.1]), metric="acc", smaller=False),
        reports(validation([1, 2, 3], acc=[0.5, 0.1, 0.1]), metric="acc", trial=2),
    )
    assert summary(ask)["best_validation"]["steps_completed"] == 2
    assert summary(ask, 2)["best_validation"]["steps_completed"] == 2
    assert (ask(BestValidation(1, False)), ask(BestValidation(1, True))) == (0.9, 0.1)


def test_the_latest_validation_needs_the_searcher_metric_the_best_a_finite_one(told):
    ask = told(
        reports(validation([1], loss=[0.5]), validation([2], loss=["NaN"]), validation([3], other=[1]))
    )
    found = summary(ask)
    assert found["latest_validation"]["steps_completed"] == 2
    assert found["latest_validation"]["metrics"] == {"loss": "NaN"}
    assert found["best_validation"]["steps_completed"] == 1
    told(reports(validation([3], loss=[0.1]), number=2))
    found = summary(ask)
    assert found["latest_validation"]["metrics"] == {"other": 1, "loss": 0.1}
    assert found["best_validation"]["steps_completed"] == 3


def test_merged_reports_are_one_row(told):
    ask = told(
        reports(training([5], a=[1])), reports(series("training", [5], {"b": [2]}, [[{"a": 1}]]), number=2)
    )
    (row,) = ask(Reports(trial_ids=[1]))["rows"]
    assert row["metrics"] == {"a": 1, "b": 2}
    assert row["batch_metrics"] == [{"a": 1}]
    assert {name: s["count"] for name, s in summary(ask)["summary"]["training"].items()} == {"a": 1, "b": 1}


def test_nobody_asked_about_is_left_out(told):
    ask = told(reports(training([1], a=[1])))
    assert ask(TrialSummaries([7])) == {}
    assert ask(BestValidation(9, True)) is None
    assert ask(Reports(trial_ids=[7])) == {"rows": [], "more": False}


def test_three_thousand_odd_names_in_one_report(told):
    names = {f"lay\0er\u2028 \"{n}\" 'x' \\ %s": [n / 7] for n in range(3000)}
    ask = told(reports(series("a/b c\0%d", [1], names)))
    (row,) = ask(Reports(trial_ids=[1]))["rows"]
    assert row["metrics"] == {name: value for name, (value,) in names.items()}
    assert set(summary(ask)["summary"][row["group"]]) == set(names)


def test_a_run_of_pages_shows_every_row_once(told, monkeypatch):
    ask = told(
        *(reports(training([n % 7 + 100 * n], a=[n]), validation([n], a=[n]), trial=t, number=n)
          for t in (1, 2) for n in range(1, 11))
    )  # fmt: skip
    whole = ask(Reports(trial_ids=[1, 2]))["rows"]
    assert len(whole) == 40
    monkeypatch.setattr(paging, "PAGE_BYTES", 3 * paging.ROW_OVERHEAD_BYTES)
    for limit in (0, 1, 3, 1000):
        found, after = [], None
        while True:
            page = ask(Reports(trial_ids=[1, 2], after=after, limit=limit))
            found += page["rows"]
            assert len(page["rows"]) <= 3
            if not page["more"]:
                break
            last = page["rows"][-1]
            after = (last["trial_id"], last["run"], last["steps_completed"], last["id"])
        assert found == whole
    assert [r["group"] for r in ask(Reports(trial_ids=[1], group="validation", limit=2))["rows"]] == [
        "validation"
    ] * 2


def texts(answer):
    return [line["text"] for line in answer["lines"]]


def test_lines_have_growing_ids_and_tell_how_far_they_are_complete(told):
    ask = told(lines("a", "b"), lines("other", task="2.z"), lines("c", offset=2, level="INFO", rank=3))
    found = ask(LogPage(task_id="1.a"))
    assert texts(found) == ["a", "b", "c"]
    assert found["through"] == 3
    assert not found["more"]
    ids = [line["id"] for line in found["lines"]]
    assert ids == sorted(set(ids))
    assert found["lines"][2] == {
        "id": ids[2], "task_id": "1.a", "allocation_id": "1.a.1", "worker_id": "w1", "at": 5.0,
        "level": "INFO", "rank": 3, "source": "task", "stdtype": "stdout", "text": "c",
    }  # fmt: skip
    assert texts(ask(LogPage(task_id="1.a", after_id=ids[0]))) == ["b", "c"]
    assert texts(ask(LogPage(task_id="1.a", descending=True, limit=2))) == ["c", "b"]
    assert texts(ask(LogPage(task_id="1.a", descending=True, after_id=ids[1]))) == ["a"]


def test_repeated_and_older_batches_of_a_source_are_left_out(told):
    first, second = lines("a", offset=0), lines("b", offset=10)
    ask = told(first, second, first, second, lines("late", offset=5), lines("c", offset=11))
    assert texts(ask(LogPage(task_id="1.a"))) == ["a", "b", "c"]
    told(lines("agent", source="agent"), lines("w2", worker="w2"), lines("run 2", run=2), first)
    assert texts(ask(LogPage(task_id="1.a")))[3:] == ["agent", "w2", "run 2"]


def test_batches_from_no_spool_are_all_taken_and_move_nothing(told):
    said = lines("said", offset=-1)
    ask = told(lines("a", offset=5), said, said, lines("b", offset=6))
    assert texts(ask(LogPage(task_id="1.a"))) == ["a", "said", "said", "b"]


FILTERS = {
    "allocations": (LogPage(task_id="1.a", allocation_ids=["1.a.2"]), ["r2"]),
    "workers": (LogPage(task_id="1.a", worker_ids=["w2", "nobody"]), ["w2"]),
    "sources": (LogPage(task_id="1.a", sources=["agent"]), ["agent"]),
    "levels": (LogPage(task_id="1.a", levels=["ERROR", "INFO"]), ["Bad 100%"]),
    "stdtypes": (LogPage(task_id="1.a", stdtypes=["stderr"]), ["Bad 100%"]),
    "ranks": (LogPage(task_id="1.a", ranks=[0, 1]), ["Bad 100%"]),
    "no rank": (LogPage(task_id="1.a", ranks=[-1]), ["plain", "r2", "w2", "agent"]),
    "either rank": (LogPage(task_id="1.a", ranks=[-1, 1]), ["plain", "Bad 100%", "r2", "w2", "agent"]),
    "before, with the bound": (LogPage(task_id="1.a", before_at=5.0), ["plain", "r2", "w2", "agent"]),
    "after, without the bound": (LogPage(task_id="1.a", after_at=5.0), ["Bad 100%"]),
    "text": (LogPage(task_id="1.a", text="Bad"), ["Bad 100%"]),
    "text is case-sensitive": (LogPage(task_id="1.a", text="bad"), []),
    "text is no pattern": (LogPage(task_id="1.a", text="0%"), ["Bad 100%"]),
    "text with %": (LogPage(task_id="1.a", text="%"), ["Bad 100%"]),
    "all at once": (LogPage(task_id="1.a", text="1", ranks=[1], levels=["INFO"]), []),
}


@pytest.mark.parametrize(("query", "wanted"), FILTERS.values(), ids=FILTERS)
def test_log_filters(told, query, wanted):
    ask = told(
        lines("plain"),
        lines("Bad 100%", offset=9, at=6.0, level="ERROR", rank=1, stdtype="stderr"),
        lines("r2", run=2),
        lines("w2", worker="w2"),
        lines("agent", source="agent"),
    )
    assert texts(ask(query)) == wanted


def test_long_logs_come_in_pages_that_fit_into_an_answer(told, monkeypatch):
    ask = told(*(lines(*[f"{n}-{m} " + "ö" * 100 for m in range(10)], offset=n) for n in range(20)))
    monkeypatch.setattr(paging, "PAGE_BYTES", 4000)
    found, after = [], 0
    while True:
        page = ask(LogPage(task_id="1.a", after_id=after, limit=0))
        assert 0 < sum(len(line["text"].encode()) for line in page["lines"]) <= 4000
        found += texts(page)
        if not page["more"]:
            break
        after = page["lines"][-1]["id"]
    assert [text.split()[0] for text in found] == [f"{n}-{m}" for n in range(20) for m in range(10)]


def test_no_line_is_too_odd_for_a_table(told):
    ask = told(
        lines("nul \0 here", "\u2028 \U0001f600", "", rank=10**30), lines("x" * 500_000, offset=3, rank=-5)
    )
    assert texts(ask(LogPage(task_id="1.a"))) == ["nul \u2400 here", "\u2028 \U0001f600", "", "x" * 500_000]
    assert texts(ask(LogPage(task_id="1.a", text="\0"))) == ["nul \u2400 here"]

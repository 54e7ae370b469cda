"""What the tables answer."""

from det_contracts.queries import BestValidation, Reports, ReportWindow, TrialSummaries
from services.metrics import paging
from tests.metrics.world import reports, series, training, validation


def rows(answer):
    return [
        (r["trial_id"], r["run"], r["group"], r["steps_completed"], r["archived"]) for r in answer["rows"]
    ]


def summary(ask, trial=1):
    return ask(TrialSummaries([trial]))[str(trial)]


def test_reports_come_in_order_of_trial_run_and_steps(saved):
    ask = saved(
        reports(training([20, 10], loss=[2, 1]), trial=2),
        reports(training([20], loss=[1]), validation([20], loss=[0.5])),
        reports(training([20], loss=[3]), run=2),
    )
    page = ask(Reports(trial_ids=[2, 1]))
    assert rows(page) == [
        (1, 1, "training", 20, True),
        (1, 1, "validation", 20, False),
        (1, 2, "training", 20, False),
        (2, 1, "training", 10, False),
        (2, 1, "training", 20, False),
    ]
    assert not page["more"]
    first = page["rows"][0]
    assert first["metrics"] == {"loss": 1}
    assert first["at"] == 120.0
    assert first["batch_metrics"] is None


def test_reports_from_before_the_first_run_are_kept_until_a_run_overtakes_them(saved):
    early = [
        reports(training([10, 20], loss=[3, 2]), run=0, number=0),
        reports(series("inference", [5], {"acc": [0.5]}), run=0, number=0),
    ]
    ask = saved(*early)
    assert rows(ask(Reports(trial_ids=[1]))) == [
        (1, 0, "inference", 5, False),
        (1, 0, "training", 10, False),
        (1, 0, "training", 20, False),
    ]
    assert summary(ask)["summary"]["inference"]["acc"]["mean"] == 0.5
    ask = saved(reports(training([20], loss=[7])))
    assert rows(ask(Reports(trial_ids=[1]))) == [
        (1, 0, "inference", 5, False),
        (1, 0, "training", 10, False),
        (1, 0, "training", 20, True),
        (1, 1, "training", 20, False),
    ]


def test_the_first_report_of_a_run_archives_what_it_overtakes(saved):
    ask = saved(
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
    answer = summary(ask)
    assert answer["summary"]["training"]["loss"] == {
        "count": 3, "sum": 18.0, "min": 3.0, "max": 8.0, "last": 8, "mean": 6.0, "type": "number",
    }  # fmt: skip
    assert answer["best_validation"]["metrics"] == {"loss": 0.2}
    assert answer["latest_validation"]["metrics"] == {"loss": 0.25}
    assert answer["total_batches"] == 30
    assert ask(BestValidation(1, True)) == 0.2


def test_what_a_worker_samples_counts_no_batches(saved):
    """Its steps are seconds, and there were more of them than batches."""
    ask = saved(
        reports(training([1, 2], loss=[1.0, 0.5])),
        reports(series("profile.process", [9], {"cpu": [0.5]}), number=2),
    )
    assert summary(ask)["total_batches"] == 2


def test_what_a_worker_samples_is_left_out_where_only_reports_are_asked_for(saved):
    ask = saved(
        reports(training([1, 2], loss=[1.0, 0.5])),
        reports(series("profile.process", [1, 9], {"cpu": [0.5, 0.6]}), number=2),
    )

    def groups(answer):
        return [row["group"] for row in answer["rows"]]

    window = ReportWindow(trial_id=1, profiled=False, limit=9)
    assert (groups(ask(window)), ask(window)["total"]) == (["training"] * 2, 2)
    assert groups(ask(Reports(trial_ids=[1], profiled=False))) == ["training"] * 2
    named = {"group": "profile.process", "profiled": False}
    assert ask(ReportWindow(trial_id=1, **named))["total"] == 2
    assert groups(ask(Reports(trial_ids=[1], **named))) == ["profile.process"] * 2
    assert len(groups(ask(Reports(trial_ids=[1])))) == ask(ReportWindow(trial_id=1))["total"] == 4


def test_an_overtaken_best_counts_no_more(saved):
    ask = saved(reports(validation([10, 20], loss=[0.5, 0.1])))
    assert ask(BestValidation(1, True)) == 0.1
    saved(reports(validation([20], loss=[0.4]), run=2))
    assert ask(BestValidation(1, True)) == 0.4
    assert summary(ask)["best_validation"]["run"] == 2


def test_the_direction_counts_and_ties_keep_the_older(saved):
    ask = saved(
        reports(validation([1, 2, 3, 4], acc=[0.5, 0.9, 0.9, 0.1]), metric="acc", smaller=False),
        reports(validation([1, 2, 3], acc=[0.5, 0.1, 0.1]), metric="acc", trial=2),
    )
    assert summary(ask)["best_validation"]["steps_completed"] == 2
    assert summary(ask, 2)["best_validation"]["steps_completed"] == 2
    assert (ask(BestValidation(1, False)), ask(BestValidation(1, True))) == (0.9, 0.1)


def test_the_latest_validation_needs_the_searcher_metric_the_best_a_finite_one(saved):
    ask = saved(
        reports(validation([1], loss=[0.5]), validation([2], loss=["NaN"]), validation([3], other=[1]))
    )
    trial_summary = summary(ask)
    assert trial_summary["latest_validation"]["steps_completed"] == 2
    assert trial_summary["latest_validation"]["metrics"] == {"loss": "NaN"}
    assert trial_summary["best_validation"]["steps_completed"] == 1
    saved(reports(validation([3], loss=[0.1]), number=2))
    trial_summary = summary(ask)
    assert trial_summary["latest_validation"]["metrics"] == {"other": 1, "loss": 0.1}
    assert trial_summary["best_validation"]["steps_completed"] == 3


def test_merged_reports_are_one_row(saved):
    ask = saved(
        reports(training([5], a=[1])), reports(series("training", [5], {"b": [2]}, [[{"a": 1}]]), number=2)
    )
    (row,) = ask(Reports(trial_ids=[1]))["rows"]
    assert row["metrics"] == {"a": 1, "b": 2}
    assert row["batch_metrics"] == [{"a": 1}]
    assert {name: s["count"] for name, s in summary(ask)["summary"]["training"].items()} == {"a": 1, "b": 1}


def test_nobody_asked_about_is_left_out(saved):
    ask = saved(reports(training([1], a=[1])))
    assert ask(TrialSummaries([7])) == {}
    assert ask(BestValidation(9, True)) is None
    assert ask(Reports(trial_ids=[7])) == {"rows": [], "more": False}


def test_three_thousand_odd_names_in_one_report(saved):
    names = {f"lay\0er\u2028 \"{n}\" 'x' \\ %s": [n / 7] for n in range(3000)}
    ask = saved(reports(series("a/b c\0%d", [1], names)))
    (row,) = ask(Reports(trial_ids=[1]))["rows"]
    assert row["metrics"] == {name: value for name, (value,) in names.items()}
    assert set(summary(ask)["summary"][row["group"]]) == set(names)


def test_a_run_of_pages_shows_every_row_once(saved, monkeypatch):
    ask = saved(
        *(reports(training([n % 7 + 100 * n], a=[n]), validation([n], a=[n]), trial=t, number=n)
          for t in (1, 2) for n in range(1, 11))
    )  # fmt: skip
    whole = ask(Reports(trial_ids=[1, 2]))["rows"]
    assert len(whole) == 40
    monkeypatch.setattr(paging, "PAGE_BYTES", 3 * paging.ROW_OVERHEAD_BYTES)
    for limit in (0, 1, 3, 1000):
        all_rows, after = [], None
        while True:
            page = ask(Reports(trial_ids=[1, 2], after=after, limit=limit))
            all_rows += page["rows"]
            assert len(page["rows"]) <= min(limit or 3, 3)
            if not page["more"]:
                break
            last = page["rows"][-1]
            after = (last["trial_id"], last["run"], last["steps_completed"], last["id"])
        assert all_rows == whole
    assert [r["group"] for r in ask(Reports(trial_ids=[1], group="validation", limit=2))["rows"]] == [
        "validation"
    ] * 2

"""Historical use of slots, run by run and added up, as JSON and CSV."""

import csv
import io

import pytest

from det_contracts.events import searcher
from det_contracts.events.gateway import AuthzSet
from services.catalogue import runs
from tests.gateway import stories

DAY = 24 * 3600.0
NOON = 19_600 * DAY + DAY / 2
"""2023-08-31, 12:00 UTC."""
RAW = "/resources/allocation/raw"
SUMMED = "/resources/allocation/aggregated"
PERIOD = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_"
WHOLE = {"timestampAfter": "2023-08-01T00:00:00Z", "timestampBefore": "2023-10-01T00:00:00Z"}


@pytest.fixture
def used(gateway):
    """Trial 1 (labels a, b) held one slot for 24 hours over the end of August; trial 2 never ran."""
    begin = [stories.worker_here(), stories.created(1, labels=["a", "b"]), stories.trial_created(1)]
    gateway.apply(*begin, searcher.ExperimentActivated(1, "asked"), *stories.running(1), at=NOON)
    gateway.apply(stories.trial_created(2), stories.run_requested(2), at=NOON)
    gateway.apply(stories.allocation_ended(1), at=NOON + DAY)
    return gateway


def raw(gateway, **changes):
    return gateway.get(f"/api/v1{RAW}", **(WHOLE | changes))["resourceEntries"]


def table(gateway, path, **params):
    answer = gateway.send("GET", path, params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_each_run_is_listed_with_its_times_and_owner(used):
    (entry,) = raw(used)
    assert entry == {
        "kind": "training",
        "startTime": "2023-08-31T12:00:00.000000Z",
        "endTime": "2023-09-01T12:00:00.000000Z",
        "experimentId": 1,
        "username": "determined",
        "userId": 2,
        "labels": ["a", "b"],
        "seconds": DAY,
        "slots": 1,
    }


def test_only_what_lies_within_the_time_counts(used):
    (entry,) = raw(used, timestampBefore="2023-08-31T13:00:00Z")
    assert (entry["seconds"], entry["endTime"]) == (3600, "2023-09-01T12:00:00.000000Z")
    (entry,) = raw(used, timestampAfter="2023-09-01T11:00:00Z")
    assert entry["seconds"] == 3600
    assert raw(used, timestampAfter="2023-09-01T12:00:00Z") == [], "it had ended by then"
    assert raw(used, timestampBefore="2023-08-31T12:00:00Z") == [], "it had not begun"


def test_what_runs_still_counts_up_to_now_and_has_no_end(gateway):
    gateway.apply(stories.worker_here(), stories.created(1), stories.trial_created(1), at=NOON)
    gateway.apply(*stories.running(1), at=NOON)
    (entry,) = raw(gateway)
    assert entry["endTime"] is None
    assert entry["startTime"] == "2023-08-31T12:00:00.000000Z"
    assert entry["seconds"] == 30.5 * DAY, "up to the end of what is asked for"


def test_days_and_months_are_added_up_by_user_label_and_pool(used):
    params = {"startDate": "2023-08-01", "endDate": "2023-09-30", "period": f"{PERIOD}DAILY"}
    first, second = used.get(f"/api/v1{SUMMED}", **params)["resourceEntries"]
    assert (first["periodStart"], second["periodStart"]) == ("2023-08-31", "2023-09-01")
    assert first == {
        "periodStart": "2023-08-31",
        "period": f"{PERIOD}DAILY",
        "seconds": DAY / 2,
        "byUsername": {"determined": DAY / 2},
        "byExperimentLabel": {"a": DAY / 2, "b": DAY / 2},
        "byResourcePool": {"default": DAY / 2},
        "byAgentLabel": {},
    }
    months = {"startDate": "2023-08", "endDate": "2023-09", "period": f"{PERIOD}MONTHLY"}
    entries = used.get(f"/api/v1{SUMMED}", **months)["resourceEntries"]
    assert [(entry["periodStart"], entry["seconds"]) for entry in entries] == [
        ("2023-08-01", DAY / 2),
        ("2023-09-01", DAY / 2),
    ]
    only = {**params, "startDate": "2023-09-01", "endDate": "2023-09-01"}
    (day,) = used.get(f"/api/v1{SUMMED}", **only)["resourceEntries"]
    assert day == second, "the last day belongs to what is asked for"


def test_what_is_added_up_goes_through_no_runs_that_ended(used, monkeypatch):
    """A million runs of a year took a gigabyte and half a minute, record by record."""
    monkeypatch.setattr(runs, "runs_between", None)
    for trial in range(3, 10):
        used.apply(stories.trial_created(trial), *stories.running(trial), at=NOON + trial)
        used.apply(stories.allocation_ended(trial), at=NOON + trial + 3600)
    params = {"startDate": "2023-08-31", "endDate": "2023-09-30", "period": PERIOD + "MONTHLY"}
    first, second = used.get(f"/api/v1{SUMMED}", **params)["resourceEntries"]
    assert (first["seconds"], second["seconds"]) == (DAY / 2 + 7 * 3600, DAY / 2)


def test_tables_hold_the_same_in_either_spelling(used):
    (row,) = table(used, RAW, timestamp_after="2023-08-01T00:00:00Z", timestamp_before="2023-10-01T00:00:00Z")
    assert row == {
        "experiment_id": "1",
        "kind": "training",
        "username": "determined",
        "labels": "a,b",
        "slots": "1",
        "start_time": "2023-08-31T12:00:00.000000Z",
        "end_time": "2023-09-01T12:00:00.000000Z",
        "seconds": "86400.0",
    }
    (row,) = table(used, "/resources/allocation/allocations-csv", **WHOLE)
    assert (row["workspace_name"], row["slot_hours"]) == ("Uncategorized", "24.0")
    rows = table(used, SUMMED, start_date="2023-08", end_date="2023-08", period=f"{PERIOD}MONTHLY")
    assert [tuple(row.values()) for row in rows] == [
        ("total", "total", "2023-08", "43200.0"),
        ("username", "determined", "2023-08", "43200.0"),
        ("experiment_label", "a", "2023-08", "43200.0"),
        ("experiment_label", "b", "2023-08", "43200.0"),
        ("resource_pool", "default", "2023-08", "43200.0"),
    ]


def test_a_label_is_no_formula_of_a_spreadsheet(gateway):
    gateway.apply(stories.worker_here(), stories.created(1, labels=["=cmd()"]), at=NOON)
    gateway.apply(stories.trial_created(1), *stories.running(1), at=NOON)
    (row,) = table(gateway, RAW, **WHOLE)
    assert row["labels"] == "'=cmd()"


@pytest.mark.parametrize(
    ("path", "params", "reason"),
    [
        (RAW, {}, "timestampAfter and timestampBefore are needed"),
        (RAW, {"timestampAfter": "yesterday", "timestampBefore": "now"}, "must be a time like"),
        (RAW, {k: WHOLE[v] for k, v in zip(WHOLE, reversed(WHOLE), strict=True)}, "is later than"),
        (SUMMED, {"startDate": "2023-08-01"}, "endDate must be like 2023-08-01, not ''"),
        (SUMMED, {"startDate": "2023-8-1", "endDate": "2023-08-02"}, "startDate must be like 2023-08-01"),
        (SUMMED, {"startDate": "2023-02-30", "endDate": "2023-03-02"}, "startDate must be like"),
        (SUMMED, {"startDate": "2023-08-02", "endDate": "2023-08-01"}, "startDate is later"),
        (SUMMED, {"startDate": "1900-01-01", "endDate": "2023-08-01"}, "more than 4000 periods"),
        (SUMMED, {"startDate": "9999-12-31", "endDate": "9999-12-31"}, "startDate must be like"),
        (SUMMED, {"startDate": "2023-08-01", "endDate": "2023-08-01", "period": "WEEKLY"}, "DAILY, MONTHLY"),
    ],
)
def test_invalid_times_are_rejected_with_a_reason(used, path, params, reason):
    assert reason in used.refused(400, "GET", f"/api/v1{path}", params=params)
    answer = used.send("GET", path, params=params)
    assert (answer.status_code, reason in answer.text) == (400, True)


def test_where_roles_decide_it_takes_the_right_to_read_the_log(used):
    assert len(raw(used)) == 1
    used.apply(AuthzSet("rbac", "tried"), at=NOON + 2 * DAY)
    for path, params in ((RAW, WHOLE), (SUMMED, {"startDate": "2023-08-01", "endDate": "2023-08-02"})):
        assert "lacks a role" in used.refused(403, "GET", f"/api/v1{path}", params=params)
        assert used.send("GET", path, params=params).status_code == 403

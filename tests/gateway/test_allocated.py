"""Historical use of slots, run by run and added up, as JSON and CSV."""

import asyncio
import csv
import io
import itertools
from urllib.parse import urlencode

import pytest

from det_contracts.events import searcher
from det_contracts.events.gateway import AuthzSet, ProjectRemoved, WorkspaceRemoved
from services.catalogue import runs
from services.rest_routes.cluster import allocated
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
    monkeypatch.setattr(runs, "runs_page", None)
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


def test_hours_in_a_workspace_that_was_removed_are_not_charged_to_the_first(gateway):
    gateway.log_in("admin")
    space = gateway.post("/api/v1/workspaces", {"name": "Vision"})["workspace"]["id"]
    project = gateway.post(f"/api/v1/workspaces/{space}/projects", {"name": "Digits"})["project"]["id"]
    gateway.apply(stories.worker_here(), stories.created(1), at=NOON)
    gateway.post("/api/v1/experiments/1/move", {"destinationProjectId": project})
    gateway.apply(stories.trial_created(1), *stories.running(1), at=NOON)
    gateway.apply(stories.allocation_ended(1), at=NOON + DAY)
    # The searcher and the gateway decide about experiments and places: this is stored behind the other's.
    gateway.apply(ProjectRemoved(project, "removed by bob"), WorkspaceRemoved(space, "removed by bob"))
    (row,) = table(gateway, "/resources/allocation/allocations-csv", **WHOLE)
    assert (row["workspace_name"], row["slot_hours"]) == ("(removed)", "24.0")


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


EXPORTS = (f"/api/v1{RAW}", RAW, "/resources/allocation/allocations-csv")


@pytest.fixture
def many_runs(used):
    """Seven trials more, of which three began at the same time, and one still runs."""
    for trial, at in ((3, 5), (4, 5), (5, 5), (6, 1), (7, 9), (8, 3), (9, 7)):
        used.apply(stories.trial_created(trial), *stories.running(trial), at=NOON + at)
        if trial != 8:
            used.apply(stories.allocation_ended(trial), at=NOON + at + 3600)
    return used


def exported(gateway, path):
    answer = gateway.send("GET", path, params=WHOLE)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_exports_are_read_page_by_page_and_miss_and_repeat_no_run(many_runs, monkeypatch, size):
    whole = {path: exported(many_runs, path) for path in EXPORTS}
    names = [row["allocation_id"] for row in csv.DictReader(io.StringIO(whole[EXPORTS[-1]]))]
    assert names == [f"1.r{trial}.1" for trial in (1, 6, 8, 3, 4, 5, 9, 7)]
    largest = []
    read = runs.runs_page

    def noted(*arguments):
        page = read(*arguments)
        largest.append(len(page))
        return page

    monkeypatch.setattr(runs, "runs_page", noted)
    monkeypatch.setattr(allocated, "RUNS_PER_PAGE", size)
    assert {path: exported(many_runs, path) for path in EXPORTS} == whole
    assert max(largest) == size


@pytest.mark.parametrize("path", EXPORTS)
def test_an_export_stops_when_the_client_hangs_up(many_runs, monkeypatch, path):
    monkeypatch.setattr(allocated, "RUNS_PER_PAGE", 1)
    pages, read = [], runs.runs_page
    monkeypatch.setattr(runs, "runs_page", lambda *arguments: pages.append(1) or read(*arguments))
    gone, bodies = asyncio.Event(), []
    token = many_runs.client.headers["Authorization"].encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": urlencode(WHOLE).encode(), "root_path": "",
        "headers": [(b"host", b"gateway"), (b"authorization", token)],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip

    received = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        if (message := next(received, None)) is not None:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message.get("body"):
            bodies.append(message["body"])
        if len(bodies) == 3:
            gone.set()
            # A client that has gone takes nothing more.
            await asyncio.Event().wait()

    many_runs.run(many_runs.app(scope, receive, send))
    assert len(bodies) == 3
    # Nothing is read ahead of what the client takes.
    assert len(pages) <= 3
    assert many_runs.backend.limits.streams.active == 0


def test_sums_are_read_month_by_month(used, monkeypatch):
    days, read = [], runs.use

    def noted(connection, first, last, now):
        days.append((first, last))
        return read(connection, first, last, now)

    monkeypatch.setattr(runs, "use", noted)
    params = {"startDate": "2023-08-30", "endDate": "2023-10-02", "period": PERIOD + "DAILY"}
    entries = used.get(f"/api/v1{SUMMED}", **params)["resourceEntries"]
    assert [entry["periodStart"] for entry in entries] == ["2023-08-31", "2023-09-01"]
    assert [last - first + 1 for first, last in days] == [2, 30, 2]
    assert all(end + 1 == begin for (_, end), (begin, _) in itertools.pairwise(days))

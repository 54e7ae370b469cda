"""What the gateway holds for an answer does not grow with what trials have reported."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts import queries
from det_contracts.events import checkpoints as facts
from det_contracts.problems import unavailable
from services.catalogue.peers import Report
from services.rest_requests import api_call
from services.rest_routes import change_stream
from services.rest_routes.checkpoints import checkpoints
from services.rest_routes.cluster import usage
from services.rest_routes.trials import curve_queries, series, trial_sources, workloads
from tests.gateway import stories as story


def report(id, trial_id=1, steps=None):
    return Report(id, trial_id, 1, "validation", id if steps is None else steps, float(id), {"loss": 0.5})


class ReadPeers:
    """A trial's reports, page by page, and how many pages were read."""

    def __init__(self, pages):
        self._pages = pages
        self.read = 0

    async def reports(self, trial_ids, group, *, archived=True):
        for page in self._pages:
            self.read += 1
            yield page


def test_a_list_of_checkpoints_holds_no_validations_but_theirs():
    peers = ReadPeers([[report(100 * page + n) for n in range(100)] for page in range(50)])
    listed = [(1, steps) for steps in (7, 4321, 10**6)]
    call = SimpleNamespace(peers=peers)
    validations = asyncio.run(checkpoints.validations_at(call, listed))
    assert {place: row.id for place, row in validations.items()} == {(1, 7): 7, (1, 4321): 4321}
    assert peers.read == 50


def test_of_trials_that_use_a_checkpoint_as_many_large_reports_are_read_as_fit():
    peers = ReadPeers([[report(n)] for n in range(1000)])
    reports = asyncio.run(trial_sources._reports(SimpleNamespace(peers=peers), [1]))
    assert len(reports[1]) == peers.read == trial_sources.MAX_ANSWERS


def rows(count):
    return [
        {
            "id": n,
            "trial_id": 1,
            "run": 1,
            "group": "training",
            "steps_completed": n,
            "at": float(n),
            "metrics": {"loss": 0.5},
        }
        for n in range(1, count + 1)
    ]


@pytest.fixture
def trial(gateway):
    gateway.apply(story.created(1), story.trial_created(1, 1), story.trial_created(2, 1))
    return gateway


def test_too_many_reports_are_not_sorted_by_a_metric(trial, monkeypatch):
    monkeypatch.setattr(workloads, "MAX_SORTED", 100)
    path, params = "/api/v1/trials/1/workloads", {"sortKey": "loss", "limit": 1}
    trial.peers.values[queries.Reports] = {"rows": rows(100), "more": False}
    assert len(trial.get(path, **params)["workloads"]) == 1
    trial.peers.values[queries.Reports] = {"rows": rows(101), "more": False}
    refusal = trial.refused(400, "GET", path, params=params)
    assert "trial 1 has more than 100 such reports" in refusal
    assert "/api/v1/trials/1/metrics/export" in refusal


def test_curves_of_too_many_values_are_refused(trial, monkeypatch):
    monkeypatch.setattr(curve_queries, "MAX_VALUES", 100)
    params = {"trialIds": [1, 2], "metricNames": ["loss", "accuracy"], "maxDatapoints": 10_000}

    def curves(points):
        values = {"loss": 0.5, "accuracy": 0.5}
        trial.peers.values[queries.Series] = lambda query: [
            {
                "trial_id": id,
                "group": "training",
                "points": [[n, float(n), None, values] for n in range(points)],
            }
            for id in query.trial_ids
        ]

    curves(25)
    assert len(trial.get("/api/v1/trials/time-series", **params)["trials"]) == 2
    curves(26)
    refusal = trial.refused(400, "GET", "/api/v1/trials/time-series", params=params)
    assert "more than 100 values" in refusal
    assert "maxDatapoints" in refusal


def version(number):
    return facts.VersionSet(
        model_id=1, version_id=number, number=number, checkpoint=f"u-{number}", user="determined", reason=""
    )


def test_a_long_page_is_made_part_by_part(trial, monkeypatch):
    trial.apply(
        *(story.stored(1, f"u-{steps}", steps) for steps in range(5)), story.created(2), story.created(3)
    )
    trial.apply(
        facts.ModelSet(model_id=1, name="digits", user="determined", reason=""), *map(version, range(1, 5))
    )
    validations = [{**row, "group": "validation"} for row in rows(3)]
    trial.peers.values[queries.Reports] = {"rows": validations, "more": False}
    pages = {
        "/api/v1/experiments-search": ("experiments", 3),
        "/api/v1/models/digits/versions": ("modelVersions", 4),
        "/api/v1/trials/1/checkpoints": ("checkpoints", 5),
        "/api/v1/experiments/1/checkpoints": ("checkpoints", 5),
        "/api/v1/experiments/1/trials": ("trials", 2),
        "/api/v1/experiments": ("experiments", 3),
    }

    def answered(path, **params):
        answer = trial.get(path, **params)
        for entry in answer[pages[path][0]]:
            # It differs from one answer to the next.
            entry.get("experiment", entry).pop("duration", None)
        return answer

    whole = {path: answered(path) for path in pages}
    assert {path: len(whole[path][name]) for path, (name, _) in pages.items()} == {
        path: count for path, (_, count) in pages.items()
    }
    for part in (1, 2, 4):
        monkeypatch.setattr(api_call, "PART", part)
        assert {path: answered(path) for path in pages} == whole
        for path, (name, _) in pages.items():
            assert answered(path, limit=2, offset=1)[name] == whole[path][name][1:3]


def test_a_preview_of_retention_is_made_part_by_part(trial, monkeypatch):
    trial.apply(*(story.stored(1, f"u-{steps}", steps) for steps in range(5)))
    trial.peers.values[queries.PreviewRetention] = [f"u-{steps}" for steps in range(4)] + ["gone"]
    whole = trial.get("/experiments/1/preview_gc")
    assert whole.keys() == {"checkpoints", "metric_name"}
    assert [entry["UUID"] for entry in whole["checkpoints"]] == [f"u-{steps}" for steps in range(4)]
    for part in (1, 2, 4):
        monkeypatch.setattr(api_call, "PART", part)
        assert trial.get("/experiments/1/preview_gc") == whole


def test_series_of_many_trials_are_sent_query_by_query(trial, monkeypatch):
    def buckets(query):
        return [{"trial_id": id, "name": "loss", "group": "training"} for id in query.trial_ids]

    trial.peers.values[queries.Buckets] = buckets
    params = {"trialIds": [1, 2], "names": ["loss"], "width": 100}
    whole = trial.get("/api/v1/series", **params)["series"]
    assert [row["trialId"] for row in whole] == [1, 2]
    monkeypatch.setattr(series, "MAX_BUCKETS_PER_QUERY", 100)
    assert trial.get("/api/v1/series", **params)["series"] == whole
    trial.peers.values[queries.Buckets] = unavailable("metrics is away")
    assert "metrics is away" in trial.refused(503, "GET", "/api/v1/series", params=params)


def test_of_a_long_answer_only_the_parts_that_changed_are_sent_again():
    """Whoever follows batches adds them up, as the web UI of 0.25 does."""
    rounds = [[[10, 20], [30]], [[10, 20], [30, 40]], [[5, 10], [30, 40], [50]]]
    begun = []

    async def fetch():
        begun.append(len(begun))
        for part in rounds[begun[-1]]:
            yield part

    async def at_once(_):
        pass

    # It is looked before what is over is read for the last time.
    waiters = SimpleNamespace(holds=lambda _: len(begun) == len(rounds) - 1)
    turns = []

    async def take_turn():
        turns.append(len(begun))

    call = SimpleNamespace(
        catalogue=SimpleNamespace(waiters=waiters, wait_until=at_once),
        recheck=lambda: None,
        take_turn=take_turn,
    )

    async def work():
        return [page async for page in change_stream.stream_changed_parts(call, fetch, None, 60.0)]

    assert asyncio.run(work()) == [[[10, 20]], [[30]], [[30, 40]], [[5, 10]], [[50]]]
    assert turns == [1, 1, 2, 2, 3, 3, 3], "a turn for each part, also for those that did not change"


def test_too_many_runs_of_slots_are_no_timeline(trial, monkeypatch):
    trial.apply(story.worker_here(), *story.running(1), *story.running(2, slot=1), at=time.time() - 60)
    assert len(trial.get("/api/v1/cluster/slots")["slots"]) == 2
    monkeypatch.setattr(usage, "MAX_SLOT_RUNS", 1)
    refusal = trial.refused(400, "GET", "/api/v1/cluster/slots")
    assert "more than 1 runs held slots" in refusal
    assert "/resources/allocation/allocations-csv" in refusal


def test_no_part_is_made_before_the_last_is_taken(monkeypatch):
    monkeypatch.setattr(api_call, "PART", 2)
    made = []

    async def show(some):
        made.append(list(some))
        return list(some)

    call = SimpleNamespace(recheck=lambda: None)
    call.stream_list = partial(api_call.UserCall.stream_list, call)

    async def work():
        answer = await api_call.UserCall.answer_list(call, "numbers", [1, 2, 3, 4, 5], show)
        sent = answer.body_iterator
        assert made == [[1, 2]]
        body = await anext(sent) + await anext(sent)
        assert made == [[1, 2]]
        async for part in sent:
            body += part
        return msgspec.json.decode(body)

    assert asyncio.run(work()) == {"numbers": [1, 2, 3, 4, 5]}

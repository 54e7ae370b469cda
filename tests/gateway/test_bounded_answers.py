"""What the gateway holds for an answer does not grow with what trials have reported."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts import queries
from services.catalogue.peers import Report
from services.rest_requests import api_call
from services.rest_routes.checkpoints import checkpoints
from services.rest_routes.trials import curve_queries, trial_sources, workloads
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
    listed = [SimpleNamespace(trial_id=1, steps=steps) for steps in (7, 4321, 10**6)]
    call = SimpleNamespace(peers=peers)
    validations = asyncio.run(checkpoints._validations(call, listed))
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


def test_a_long_page_is_made_part_by_part(trial, monkeypatch):
    trial.apply(
        *(story.stored(1, f"u-{steps}", steps) for steps in range(5)), story.created(2), story.created(3)
    )
    pages = {
        "/api/v1/trials/1/checkpoints": ("checkpoints", 5),
        "/api/v1/experiments/1/checkpoints": ("checkpoints", 5),
        "/api/v1/experiments/1/trials": ("trials", 2),
        "/api/v1/experiments": ("experiments", 3),
    }

    def answered(path, **params):
        answer = trial.get(path, **params)
        for entry in answer[pages[path][0]]:
            # It differs from one answer to the next.
            entry.pop("duration", None)
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


def test_no_part_is_made_before_the_last_is_taken(monkeypatch):
    monkeypatch.setattr(api_call, "PART", 2)
    made = []

    async def show(some):
        made.append(list(some))
        return list(some)

    async def work():
        answer = await api_call.UserCall.answer_list(SimpleNamespace(), "numbers", [1, 2, 3, 4, 5], show, {})
        sent = answer.body_iterator
        assert made == [[1, 2]]
        body = await anext(sent) + await anext(sent)
        assert made == [[1, 2]]
        async for part in sent:
            body += part
        return msgspec.json.decode(body)

    assert asyncio.run(work()) == {"pagination": {}, "numbers": [1, 2, 3, 4, 5]}

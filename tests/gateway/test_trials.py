"""Trials, what they did and what they saved (REST spec, sections 4 and 5)."""

from __future__ import annotations

import pytest

from det_contracts import queries
from det_contracts.commands import KillTrial
from det_contracts.events import searcher, trial
from det_contracts.problems import unavailable
from services.rest_routes.trials import workloads
from tests.gateway import stories as story


@pytest.fixture
def search(gateway):
    """Experiment 1 with four trials: one done, one running, one queued, one idle."""
    gateway.apply(story.created(1), searcher.ExperimentActivated(1, "go"))
    gateway.apply(*(story.trial_created(id, lr=0.1 * id) for id in (1, 2, 3, 4)))
    gateway.apply(*story.running(1), story.validated(1, 100, 0.3), story.stored(1, "u-1", 100))
    gateway.apply(story.allocation_ended(1), story.trial_ended(1), at=1_700_000_060.0)
    gateway.apply(*story.running(2, 1), story.validated(2, 50, 0.2), story.validated(2, 80, 0.9))
    gateway.apply(story.run_requested(3))
    return gateway


def _trials(gateway, **params):
    return [row["id"] for row in gateway.get("/api/v1/experiments/1/trials", **params)["trials"]]


def test_a_trial_tells_what_happened_to_it(search):
    best = {"steps_completed": 100, "at": 1_700_000_050.5, "metrics": {"loss": 0.3, "n": "NaN"}, "run": 1}
    search.peers.values[queries.TrialSummaries] = {
        "1": {
            "total_batches": 110,
            "best_validation": best,
            "latest_validation": best,
            "summary": {"training": {"loss": {"count": 3}}, "validation": {}, "mine": {}},
        }
    }
    shown_trial = search.get("/api/v1/trials/1")["trial"]
    assert shown_trial["state"] == "STATE_COMPLETED"
    assert shown_trial["stateReason"] == "trained as far as asked"
    assert shown_trial["endTime"] == "2023-11-14T22:14:20.000000Z"
    assert shown_trial["hparams"] == {"lr": 0.1}
    assert shown_trial["totalBatchesProcessed"] == 110
    assert shown_trial["bestValidation"]["metrics"]["avgMetrics"] == {"loss": 0.3, "n": "NaN"}
    assert shown_trial["bestValidation"]["endTime"] == "2023-11-14T22:14:10.500000Z"
    assert shown_trial["latestValidation"]["totalBatches"] == 100
    assert shown_trial["bestCheckpoint"]["uuid"] == "u-1"
    assert shown_trial["totalCheckpointSize"] == "5000000000"
    assert shown_trial["checkpointCount"] == 1
    assert shown_trial["wallClockTime"] == 60.0
    assert shown_trial["taskId"] == "1.r1"
    assert set(shown_trial["summaryMetrics"]) == {"avg_metrics", "validation_metrics", "mine"}
    assert shown_trial["searcherMetricValue"] == 0.3


def test_states_of_trials_are_shown_with_their_reasons(search):
    search.peers.values[queries.Waiting] = {"1.r3.1": "all slots are in use"}
    trials = search.get("/api/v1/experiments/1/trials")["trials"]
    assert [(row["id"], row["state"]) for row in trials] == [
        (1, "STATE_COMPLETED"),
        (2, "STATE_RUNNING"),
        (3, "STATE_QUEUED"),
        (4, "STATE_ACTIVE"),
    ]
    assert trials[2]["stateReason"] == "all slots are in use"
    search.apply(searcher.ExperimentPaused(1, "paused by admin"))
    trials = search.get("/api/v1/experiments/1/trials")["trials"]
    assert [row["state"] for row in trials] == ["STATE_COMPLETED"] + 3 * ["STATE_PAUSED"]
    assert trials[1]["stateReason"] == "paused by admin"
    search.apply(searcher.ExperimentActivated(1, "again"), searcher.TrialStopping(2, "STOPPING_KILLED", "k"))
    search.apply(searcher.ExperimentStopping(1, "STOPPING_CANCELED", "canceled by admin"))
    trials = search.get("/api/v1/experiments/1/trials")["trials"]
    assert trials[1]["state"] == "STATE_STOPPING_KILLED"
    assert trials[2]["state"] == "STATE_STOPPING_CANCELED"


def test_a_failed_run_says_why(search):
    search.apply(searcher.RunEnded(trial_id=2, run=1, restarts=1, reason="exit code 1, restart 1 of 5"))
    shown_trial = search.get("/api/v1/trials/2")["trial"]
    assert shown_trial["restarts"] == 1
    assert shown_trial["stateReason"] == "exit code 1, restart 1 of 5"


def test_the_script_may_say_what_it_does(search):
    search.apply(trial.StatusSet(2, 1, "validating"), trial.StatusSet(2, 9, "nonsense"))
    assert search.get("/api/v1/trials/2")["trial"]["runnerState"] == "validating"


@pytest.mark.parametrize(
    ("params", "ids"),
    [
        ({}, [1, 2, 3, 4]),
        ({"orderBy": "ORDER_BY_DESC"}, [4, 3, 2, 1]),
        ({"states": ["STATE_QUEUED", "STATE_RUNNING"]}, [2, 3]),
        ({"states": "STATE_ACTIVE"}, [2, 3, 4]),
        ({"sortBy": "SORT_BY_BEST_VALIDATION_METRIC"}, [2, 1, 3, 4]),
        ({"sortBy": "SORT_BY_BEST_VALIDATION_METRIC", "orderBy": "ORDER_BY_DESC"}, [1, 2, 4, 3]),
        ({"sortBy": "SORT_BY_LATEST_VALIDATION_METRIC"}, [1, 2, 3, 4]),
        ({"sortBy": "SORT_BY_BATCHES_PROCESSED", "orderBy": "ORDER_BY_DESC"}, [1, 2, 4, 3]),
        ({"sortBy": "SORT_BY_CHECKPOINT_SIZE", "orderBy": "ORDER_BY_DESC"}, [1, 4, 3, 2]),
        ({"sortBy": "SORT_BY_DURATION"}, [1, 2, 3, 4]),
        ({"limit": 2, "offset": 1}, [2, 3]),
        ({"limit": 0}, [1, 2, 3, 4]),
        ({"offset": -1}, [4]),
    ],
)
def test_trials_are_sorted_and_paged(search, params, ids):
    assert _trials(search, **params) == ids


def test_trials_where_larger_is_better_are_sorted_best_first(gateway):
    searching = {**story.SMALL["searcher"], "metric": "accuracy", "smaller_is_better": False}
    gateway.apply(story.created(1, searcher=searching), *(story.trial_created(id) for id in (1, 2, 3)))
    gateway.apply(story.validated(1, 1, 0.2), story.validated(2, 1, 0.8))
    assert _trials(gateway, sortBy="SORT_BY_BEST_VALIDATION_METRIC") == [2, 1, 3]


def test_no_group_takes_the_place_of_training_and_validation(search):
    groups = ("avg_metrics", "training", "validation", "validation_metrics")
    search.peers.values[queries.TrialSummaries] = {"1": {"summary": {name: {name: {}} for name in groups}}}
    shown = search.get("/api/v1/trials/1")["trial"]["summaryMetrics"]
    assert shown == {"avg_metrics": {"training": {}}, "validation_metrics": {"validation": {}}}


def test_an_offset_outside_is_400_in_most_lists(search):
    path = "/api/v1/experiments/1/trials"
    assert "offset out of bounds" in search.refused(400, "GET", path, params={"offset": 5})
    assert "offset out of bounds" in search.refused(400, "GET", path, params={"offset": -5})
    assert search.refused(404, "GET", "/api/v1/experiments/8/trials") == "experiment '8' not found"
    assert search.refused(404, "GET", "/api/v1/trials/8") == "trial '8' not found"


def test_without_the_metrics_service_trials_are_503(search):
    search.peers.values[queries.TrialSummaries] = unavailable("the metrics service is not running")
    assert "metrics" in search.refused(503, "GET", "/api/v1/trials/1")


def test_a_trial_can_be_killed(search):
    assert search.post("/api/v1/trials/2/kill") == {}
    assert search.peers.commands == [KillTrial(trial_id=2, user="determined")]


def _row(id, group, steps, metrics, trial_id=1, archived=False):
    return {
        "id": id,
        "trial_id": trial_id,
        "run": 1,
        "group": group,
        "steps_completed": steps,
        "at": 1_700_000_000.0 + id,
        "metrics": metrics,
        "batch_metrics": [{"loss": 1}],
        "archived": archived,
    }


def _is_asked(query, group):
    return group == query.group if query.group else query.profiled or not group.startswith("profile.")


def _serve_rows(gateway, rows):
    """Rows as the metrics service would answer: filtered, ordered, in pages."""

    def answer(query):
        key = lambda row: (row["trial_id"], row["run"], row["steps_completed"], row["id"])  # noqa: E731
        matches = [
            row
            for row in sorted(rows, key=key)
            if row["trial_id"] in query.trial_ids
            and _is_asked(query, row["group"])
            and (query.archived or not row["archived"])
            and (query.after is None or key(row) > tuple(query.after))
        ]
        limit = query.limit or 1000
        return {"rows": matches[:limit], "more": len(matches) > limit}

    def window(query):
        key = lambda row: (row["steps_completed"], row["group"] == "validation")  # noqa: E731
        matches = [
            row
            for row in sorted(rows, key=key)
            if _is_asked(query, row["group"]) and not row["archived"] and row["trial_id"] == query.trial_id
        ]
        # As many as fit into an answer: here, three.
        return {
            "total": len(matches),
            "rows": matches[query.offset : query.offset + min(query.limit, 3)],
        }

    gateway.peers.values[queries.Reports] = answer
    gateway.peers.values[queries.ReportWindow] = window


@pytest.fixture
def reported(search):
    _serve_rows(
        search,
        [
            _row(1, "training", 50, {"loss": 0.9}),
            _row(2, "validation", 50, {"loss": 0.8}),
            _row(3, "training", 100, {"loss": 0.5}),
            _row(4, "validation", 100, {"loss": 0.3}),
            _row(5, "training", 70, {"loss": 0.1}, archived=True),
            # Nobody reported this: the worker took it as a sample.
            _row(6, "profile.process", 60, {"cpu": 0.5}),
        ],
    )
    return search


def _workloads(gateway, **params):
    shown = gateway.get("/api/v1/trials/1/workloads", **params)["workloads"]
    return [(kind, body["totalBatches"]) for workload in shown for kind, body in workload.items()]


def test_workloads_are_what_a_trial_did_in_order(reported):
    everything = [
        ("training", 50),
        ("validation", 50),
        ("training", 100),
        ("validation", 100),
        ("checkpoint", 100),
    ]
    assert _workloads(reported) == everything
    assert _workloads(reported, orderBy="ORDER_BY_DESC") == everything[::-1]
    assert _workloads(reported, limit=2, offset=1) == everything[1:3]
    assert _workloads(reported, filter="FILTER_OPTION_CHECKPOINT") == [("checkpoint", 100)]
    assert _workloads(reported, filter="FILTER_OPTION_VALIDATION") == [
        ("validation", 50),
        ("validation", 100),
    ]
    both = _workloads(reported, filter="FILTER_OPTION_CHECKPOINT_OR_VALIDATION")
    assert both == [("validation", 50), ("validation", 100), ("checkpoint", 100)]
    assert _workloads(reported, sortKey="loss", filter="FILTER_OPTION_VALIDATION") == both[1::-1]
    assert "filter" in reported.refused(400, "GET", "/api/v1/trials/1/workloads", params={"filter": "X"})


def test_every_page_of_workloads_is_a_part_of_the_whole(search):
    groups = ("training", "validation", "mine")
    rows = [_row(n, groups[n % 3], n // 4, {"loss": n}) for n in range(40)]
    _serve_rows(search, rows)
    search.apply(*(story.stored(1, f"u{steps}", steps) for steps in (0, 3, 3, 5, 9, 50)))
    whole = _workloads(search)
    assert len(whole) == 46
    assert [steps for _, steps in whole] == sorted(steps for _, steps in whole)
    for offset in range(0, 46, 5):
        for limit in (1, 2, 7, 20):
            for order, wanted in (("ORDER_BY_ASC", whole), ("ORDER_BY_DESC", whole[::-1])):
                page = _workloads(search, offset=offset, limit=limit, orderBy=order)
                assert page == wanted[offset : offset + limit]
    assert _workloads(search, offset=-3) == whole[-3:]
    assert "out of bounds" in search.refused(400, "GET", "/api/v1/trials/1/workloads", params={"offset": 99})


def test_workloads_are_ordered_by_numbers_of_any_size(search):
    values = [0.5, 10**400, "NaN", {"a": 1}, -2, True]
    _serve_rows(search, [_row(n, "training", n, {"m": value}) for n, value in enumerate(values, 1)])
    answer = _workloads(search, sortKey="m")
    # The checkpoint, at 100, has no such number either.
    assert [steps for _, steps in answer] == [5, 1, 6, 2, 3, 4, 100]
    assert _workloads(search, sortKey="m", limit=2, offset=2) == answer[2:4]


@pytest.mark.parametrize("sort", ["", "m"])
def test_so_many_workloads_are_one_answer_and_no_more(search, monkeypatch, sort):
    """All that a trial may report would fill the gateway's memory."""
    monkeypatch.setattr(workloads, "MAX_BYTES", 10_000)
    _serve_rows(search, [_row(n, "training", n, {"m": n}) for n in range(1, 200)])
    path = "/api/v1/trials/1/workloads"
    assert "limit and offset" in search.refused(400, "GET", path, params={"sortKey": sort})
    page = _workloads(search, sortKey=sort, limit=20, offset=10)
    assert page == [("training", n) for n in range(11, 31)]


def test_batch_metrics_of_workloads_come_when_asked_for(reported):
    path = "/api/v1/trials/1/workloads"
    bare, full = (
        reported.get(path, includeBatchMetrics=flag)["workloads"][0]["training"] for flag in ("false", "true")
    )
    assert bare["metrics"] == {"avgMetrics": {"loss": 0.9}, "batchMetrics": []}
    assert full["metrics"]["batchMetrics"] == [{"loss": 1}]


def test_metrics_are_streamed_in_pages(search):
    _serve_rows(search, [_row(n, "training", n, {"loss": n}) for n in range(1, 1502)])
    lines = search.lines("/api/v1/trials/metrics/training_metrics", trialIds=1)
    assert [len(line["result"]["metrics"]) for line in lines] == [1000, 501]
    first = lines[0]["result"]["metrics"][0]
    assert first == {
        "trialId": 1,
        "endTime": "2023-11-14T22:13:21.000000Z",
        "metrics": {
            "avgMetrics": {"loss": 1},
            "batchMetrics": [{"loss": 1}],
            "avg_metrics": {"loss": 1},
            "batch_metrics": [{"loss": 1}],
        },
        "totalBatches": 1,
        "archived": False,
        "id": 1,
        "trialRunId": 1,
        "group": "training",
    }


def test_metrics_streams_choose_groups_and_trials(reported):
    def steps(path, **params):
        lines = reported.lines(f"/api/v1/trials/metrics/{path}", **params)
        return [row["totalBatches"] for line in lines for row in line["result"]["metrics"]]

    assert steps("validation_metrics", trialIds=1) == [50, 100]
    assert steps("training_metrics", trial_ids=1) == [50, 70, 100]
    assert len(steps("trial_metrics", trialIds=[1, 2])) == 5
    assert steps("trial_metrics", trialIds=[1], group="validation") == [50, 100]
    reported.refused(400, "GET", "/api/v1/trials/metrics/trial_metrics")
    reported.refused(404, "GET", "/api/v1/trials/metrics/trial_metrics", params={"trialIds": 77})


def test_a_stream_that_fails_midway_ends_with_an_error_line(search):
    def answer(query):
        if query.after is not None:
            raise unavailable("the metrics service did not answer within 10 s")
        return {"rows": [_row(n, "training", n, {}) for n in range(1, 1001)], "more": True}

    search.peers.values[queries.Reports] = answer
    lines = search.lines("/api/v1/trials/metrics/trial_metrics", trialIds=1)
    assert len(lines) == 2
    assert lines[1]["error"]["http_code"] == 503
    assert lines[1]["error"]["grpc_code"] == 14
    assert "did not answer" in lines[1]["error"]["message"]


def test_checkpoints_are_listed_with_the_metrics_of_their_step(reported):
    reported.apply(story.stored(2, "u-0", 80), at=1_700_000_030.0)
    answer = reported.get("/api/v1/experiments/1/checkpoints", sortBy="SORT_BY_END_TIME")
    assert [checkpoint["uuid"] for checkpoint in answer["checkpoints"]] == ["u-1", "u-0"]
    assert answer["pagination"]["total"] == 2
    first = answer["checkpoints"][0]
    assert first["state"] == "STATE_COMPLETED"
    assert first["resources"] == {"model/": "0", "model/weights": "5000000000"}
    assert first["metadata"] == {"steps_completed": 100}
    assert first["training"]["searcherMetric"] == 0.3
    assert first["training"]["validationMetrics"]["avgMetrics"] == {"loss": 0.3}
    assert first["training"]["hparams"] == {"lr": 0.1}
    second = answer["checkpoints"][1]
    assert second["training"]["searcherMetric"] == 0.9
    assert second["training"]["validationMetrics"]["avgMetrics"] == {}

    def uuids(path, **params):
        return [row["uuid"] for row in reported.get(f"/api/v1/{path}/checkpoints", **params)["checkpoints"]]

    assert uuids("experiments/1", sortBy="SORT_BY_UUID") == ["u-0", "u-1"]
    assert uuids("experiments/1", sortBy="SORT_BY_SEARCHER_METRIC") == ["u-1", "u-0"]
    assert uuids("experiments/1", sortBy="SORT_BY_BATCH_NUMBER") == ["u-0", "u-1"]
    assert uuids("trials/2") == ["u-0"]
    reported.apply(story.deleted("u-1"))
    assert uuids("experiments/1", states="STATE_DELETED") == ["u-1"]
    assert reported.get("/api/v1/checkpoints/u-1")["checkpoint"]["state"] == "STATE_DELETED"


def test_one_checkpoint_has_the_reports_of_its_own_run(reported):
    checkpoint = reported.get("/api/v1/checkpoints/u-1")["checkpoint"]
    assert checkpoint["allocationId"] == "1.r1.1"
    assert checkpoint["training"]["trainingMetrics"]["avgMetrics"] == {"loss": 0.5}
    assert checkpoint["training"]["validationMetrics"]["avgMetrics"] == {"loss": 0.3}
    assert checkpoint["training"]["experimentConfig"]["max_restarts"] == 5
    assert reported.refused(404, "GET", "/api/v1/checkpoints/none") == "checkpoint 'none' not found"


def test_a_checkpoint_before_its_validation_gets_the_metric_later(gateway):
    gateway.apply(story.created(1), story.trial_created(1), *story.running(1), story.stored(1, "u", 10))
    assert gateway.get("/api/v1/checkpoints/u")["checkpoint"]["training"]["searcherMetric"] is None
    gateway.apply(story.validated(1, 10, 0.4))
    assert gateway.get("/api/v1/checkpoints/u")["checkpoint"]["training"]["searcherMetric"] == 0.4

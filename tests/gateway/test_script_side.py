"""What scripts without a message bus say and hear over REST (REST spec, sections 4, 6 and 8)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from det_contracts import checkpoint_ids, queries, subjects
from det_contracts.events import scheduler, searcher, trial
from det_contracts.reports import LogBatch
from services.catalogue import gathers
from services.kit import task_tokens
from services.metrics.app import RULES as METRICS
from tests.gateway import stories
from tests.gateway.harness import TASK_KEY

API = "/api/v1"


@pytest.fixture
def busy(gateway):
    """Two trials run; the script of the first one asks."""
    gateway.apply(stories.created(1))
    for id in (1, 2):
        gateway.apply(stories.trial_created(id), operation(1, 10, id), stories.run_requested(id))
        gateway.apply(stories.assigned(id, slot=id - 1), stories.started(id))
    show_token(gateway, "1.r1.1")
    gateway.peers.values[queries.ReportVerdict] = lambda query: verdict(gateway, query)
    return gateway


def show_token(gateway, allocation):
    token = task_tokens.issue(TASK_KEY, allocation)
    gateway.client.headers["Authorization"] = f"Bearer {token}"


def operation(seq, length, id=1):
    return searcher.OperationSet(trial_id=id, seq=seq, length=length, reason="the search wants it")


def verdict(gateway, query):
    """As the metrics service would judge what lies in REPORTS."""
    state, decode = METRICS.state(), METRICS.decode[subjects.REPORTS]
    for message in gateway.journal.streams[subjects.REPORTS]:
        list(METRICS.evolve(state, decode(message, subjects.REPORTS)))
    return METRICS.answers[queries.ReportVerdict](state, query)


def facts_of(gateway, kind):
    return gateway.events_of(kind)


def both(gateway, asking, *then):
    """Ask, and while that waits let something happen; returns the answer."""

    async def work():
        task = asyncio.ensure_future(asking)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not task.done()
        await gateway.append(*then)
        return await task

    return gateway.run(work())


# -- the search


def test_the_operation_and_its_completion(busy):
    answer = busy.get(f"{API}/trials/1/searcher/operation")
    assert answer == {"op": {"validateAfter": {"requestId": "r1", "length": "10"}}, "completed": False}
    done = {"op": {"length": "10"}, "searcherMetric": 0.25}
    path = f"{API}/trials/1/searcher/completed_operation"
    answer = both(busy, busy.client.post(path, json=done), operation(2, 20))
    assert answer.status_code == 200
    (fact,) = facts_of(busy, trial.OperationCompleted)
    assert (fact.trial_id, fact.run, fact.seq, fact.length, fact.metric) == (1, 1, 1, 10, 0.25)
    assert busy.get(f"{API}/trials/1/searcher/operation")["op"]["validateAfter"]["length"] == "20"
    assert busy.post(path, done) == {}
    assert len(facts_of(busy, trial.OperationCompleted)) == 1


def test_no_more_operations(busy):
    idle = searcher.TrialIdled(
        trial_id=1, seq=1, final=True, reason="the search needs no further training of it"
    )
    body = {"op": {"length": 10}, "searcherMetric": {"any": ["json"]}}
    answer = both(busy, busy.client.post(f"{API}/trials/1/searcher/completed_operation", json=body), idle)
    assert answer.status_code == 200
    assert busy.get(f"{API}/trials/1/searcher/operation")["completed"] is True
    assert facts_of(busy, trial.OperationCompleted)[0].metric == {"any": ["json"]}


def test_another_length_is_no_operation(busy):
    body = {"op": {"length": "11"}, "searcherMetric": 1}
    text = busy.refused(400, "POST", f"{API}/trials/1/searcher/completed_operation", body)
    assert "has length 10, not 11" in text
    assert facts_of(busy, trial.OperationCompleted) == []


def test_a_metric_that_is_too_large_is_refused_by_its_name(busy):
    body = {"op": {"length": 10}, "searcherMetric": "x" * 65_535}
    text = busy.refused(400, "POST", f"{API}/trials/1/searcher/completed_operation", body)
    assert "metric has 65,537 bytes of JSON: at most 65,536 are taken" in text
    assert facts_of(busy, trial.OperationCompleted) == []


def test_progress_status_and_early_exit(busy):
    assert busy.post(f"{API}/trials/1/progress", 7) == {}
    assert busy.post(f"{API}/trials/1/runner/metadata", {"state": "training"}) == {}
    assert busy.get(f"{API}/trials/1")["trial"]["runnerState"] == "training"
    for _ in range(2):
        assert busy.post(f"{API}/trials/1/early_exit", {"reason": "EXITED_REASON_INVALID_HP"}) == {}
    assert [fact.units for fact in facts_of(busy, trial.Progressed)] == [7.0]
    assert [fact.reason for fact in facts_of(busy, trial.ExitedEarly)] == ["EXITED_REASON_INVALID_HP"]
    assert "must be a number" in busy.refused(400, "POST", f"{API}/trials/1/progress", "far")
    assert "must be a number" in busy.refused(400, "POST", f"{API}/trials/1/progress", 10**400)
    busy.refused(400, "POST", f"{API}/trials/1/early_exit", {"reason": "EXITED_REASON_UNSPECIFIED"})


# -- metrics


def metrics(steps=5, run=1, batches=None, **values):
    inner = {"trialId": 1, "trialRunId": run, "stepsCompleted": steps, "metrics": {"avgMetrics": values}}
    if batches is not None:
        inner["metrics"]["batchMetrics"] = batches
    return inner


def batches_of(gateway):
    return [METRICS.decode["REPORTS"](m, "REPORTS").event.batch for m in gateway.journal.streams["REPORTS"]]


def test_metrics_of_all_groups(busy):
    busy.post(f"{API}/trials/1/training_metrics", metrics(loss=0.5, batches=[{"loss": 1}, {"loss": 0}]))
    busy.post(f"{API}/trials/1/validation_metrics", metrics(loss="NaN"))
    busy.post(f"{API}/trials/1/metrics", {"metrics": metrics(x=1), "group": "a b/c %"})
    all_series = [batch.series[0] for batch in batches_of(busy)]
    assert [(series.group, series.steps, series.columns) for series in all_series] == [
        ("training", [5], {"loss": [0.5]}),
        ("validation", [5], {"loss": ["NaN"]}),
        ("a b/c %", [5], {"x": [1]}),
    ]
    assert all_series[0].batch_metrics == [[{"loss": 1}, {"loss": 0}]]
    assert batches_of(busy)[0].searcher_metric == "loss"


def test_the_metric_rules_come_out_as_answers(busy):
    path = f"{API}/trials/1/training_metrics"
    busy.post(path, metrics(loss=0.5))
    assert busy.post(path, metrics(loss=0.5)) == {}
    assert busy.post(path, metrics(accuracy=0.5)) == {}
    text = busy.refused(400, "POST", path, metrics(loss=0.6))
    assert "overwriting existing metric keys is not supported, conflicting key: loss" in text
    text = busy.refused(400, "POST", path, metrics(run=2, loss=0.6))
    assert text == "invalid run id, 2 (reported) != 1 (expected)"


def test_a_report_without_group_or_with_an_odd_step_is_refused(busy):
    busy.refused(400, "POST", f"{API}/trials/1/metrics", {"metrics": metrics(x=1)})
    busy.refused(400, "POST", f"{API}/trials/1/training_metrics", metrics(steps=-1, x=1))
    busy.refused(400, "POST", f"{API}/trials/1/training_metrics", metrics(steps=2**60, x=1))
    assert busy.journal.streams["REPORTS"] == []


def test_more_metrics_than_a_report_may_have(busy):
    many = dict.fromkeys(map(str, range(100_001)), 1.0)
    text = busy.refused(400, "POST", f"{API}/trials/1/training_metrics", metrics(**many))
    assert text == "a report may have at most 100000 metrics, not 100001"


# -- checkpoints


def checkpoint(**changes):
    payload = {"steps_completed": 5, "note": "x"}
    ids = {"taskId": "1.r1", "allocationId": "1.r1.1", "uuid": "c-1", "state": "STATE_COMPLETED"}
    return (
        ids
        | {"resources": {"a/": "0", "a/b": "12"}, "metadata": payload, "state": "STATE_COMPLETED"}
        | changes
    )


def test_a_stored_checkpoint_is_registered_once(busy):
    for _ in range(2):
        assert busy.post(f"{API}/checkpoints", checkpoint()) == {}
    (stored_checkpoint,) = busy.get(f"{API}/trials/1/checkpoints")["checkpoints"]
    assert (stored_checkpoint["uuid"], stored_checkpoint["resources"]) == ("c-1", {"a/": "0", "a/b": "12"})
    assert stored_checkpoint["metadata"]["note"] == "x"
    assert len(facts_of(busy, trial.CheckpointStored)) == 1


def test_a_checkpoint_with_an_id_of_its_trial_is_registered(busy):
    uuid = checkpoint_ids.make(1, "s")
    assert busy.post(f"{API}/checkpoints", checkpoint(uuid=uuid, secret="s")) == {}
    assert [fact.uuid for fact in facts_of(busy, trial.CheckpointStored)] == [uuid]


def test_whose_id_another_has_registered_is_told(busy):
    """Before, the answer was that all is well, and the trial was left without its checkpoint."""
    busy.apply(stories.trial_created(2), stories.stored(2, "c-1", 3))
    text = busy.refused(400, "POST", f"{API}/checkpoints", checkpoint())
    assert "checkpoint c-1 is registered by another trial" in text


OF_ANOTHER = checkpoint_ids.make(2, "s")


@pytest.mark.parametrize(
    ("changes", "status", "text"),
    [
        ({"metadata": {}}, 400, "steps_completed"),
        ({"metadata": {"steps_completed": "5"}}, 400, "steps_completed"),
        (
            {"metadata": {"steps_completed": 5, "x": "y" * (1 << 20)}},
            400,
            "metadata has 1,048,604 bytes of JSON",
        ),
        ({"uuid": "../x"}, 400, "may hold letters"),
        ({"uuid": OF_ANOTHER}, 403, "is another trial's than 1"),
        ({"uuid": OF_ANOTHER, "secret": "s"}, 403, "is another trial's than 1"),
        ({"state": "STATE_ERROR"}, 400, "only what is complete"),
        ({"allocationId": "1.r2.1", "taskId": "1.r2"}, 403, "the token is that of 1.r1.1"),
        ({"allocationId": "1.r2.1"}, 404, "1.r2.1"),
    ],
)
def test_what_is_no_checkpoint_of_this_run(busy, changes, status, text):
    assert text in busy.refused(status, "POST", f"{API}/checkpoints", checkpoint(**changes))
    assert facts_of(busy, trial.CheckpointStored) == []


# -- signals


def leave(id="1.r1.1"):
    return scheduler.PreemptRequested(allocation_id=id, reason="trial 9 of higher priority needs the slot")


def test_a_long_poll_for_preemption(busy):
    path = f"{API}/allocations/1.r1.1/signals/preemption"
    assert busy.get(path, timeout_seconds=0) == {"preempt": False}
    answer = both(busy, busy.client.get(path, params={"timeout_seconds": "20"}), leave())
    assert answer.json() == {"preempt": True}
    assert busy.get(path, timeout_seconds=0) == {"preempt": True}
    busy.post(f"{API}/allocations/1.r1.1/signals/ack_preemption", {"allocationId": "1.r1.1"})
    busy.post(f"{API}/allocations/1.r1.1/signals/ack_preemption")
    assert facts_of(busy, trial.PreemptionAcknowledged) == [trial.PreemptionAcknowledged(1, 1)]


def test_where_everybody_is(busy):
    show_token(busy, "1.r3.1")
    parts = (scheduler.Part("w-1", (0, 1), 0), scheduler.Part("w-2", (0,), 1))
    for name, address in (("w-1", "10.0.0.1"), ("w-2", "10.0.0.2")):
        busy.apply(msgspec.structs.replace(stories.worker_here(name), address=address))
    busy.apply(stories.trial_created(3), stories.run_requested(3))
    assigned = msgspec.structs.replace(stories.assigned(3), parts=parts)
    busy.apply(assigned, stories.started(3))
    path = f"{API}/allocations/1.r3.1/resources/1.r3.1-1/rendezvous"
    second = msgspec.structs.replace(stories.started(3), worker_id="w-2")
    answer = both(busy, busy.client.get(path), second)
    payload = {"addresses": ["10.0.0.1", "10.0.0.2"], "rank": 1, "slots": [2, 1]}
    assert answer.json() == {"rendezvousInfo": payload}
    busy.refused(404, "GET", f"{API}/allocations/1.r3.1/resources/1.r3.1-2/rendezvous")


def test_all_gather_gives_everybody_the_same(busy):
    path = f"{API}/allocations/1.r1.1/all_gather"

    def share(member, data):
        return busy.client.post(path, json={"requestUuid": member, "numPeers": 2, "data": data})

    async def two(first, second):
        answers = await asyncio.gather(share(*first), share(*second))
        return [answer.json()["data"] for answer in answers]

    left, right = busy.run(two(("a", {"x": 1}), ("b", [2])))
    assert left == right == [{"x": 1}, [2]]
    left, right = busy.run(two(("c", 3), ("d", 4)))
    assert left == right == [3, 4]
    assert busy.run(share("d", "once more")).json()["data"] == [3, 4]
    busy.refused(400, "POST", path, {"requestUuid": "e", "numPeers": 3, "data": 1})
    busy.refused(400, "POST", path, {"requestUuid": "e", "numPeers": 2, "data": "x" * 70_000})
    busy.refused(400, "POST", path, {"numPeers": 2})


def test_of_all_gathers_the_last_whole_one_is_kept_until_the_run_ends(busy):
    path = f"{API}/allocations/1.r1.1/all_gather"
    state = busy.catalogue.state
    for number in range(50):
        answer = busy.send("POST", path, {"requestUuid": f"r{number}", "numPeers": 1, "data": "x" * 1000})
        assert answer.json()["data"] == ["x" * 1000]
    assert len(state.shares) == len(state.joined) == 1
    assert state.gathered["all"].size_bytes == state.gatherings["1.r1.1"].kept_bytes == 1002
    busy.apply(stories.allocation_ended(1))
    assert not state.shares
    assert not state.joined
    assert not state.gatherings
    assert state.gathered["all"].size_bytes == 0


@pytest.mark.parametrize(
    ("limit", "status", "expected"),
    [
        ("MAX_ROUND_BYTES", 400, "the members of allocation 1.r1.1 give 2004 bytes to one all-gather"),
        ("MAX_RUN_BYTES", 400, "allocation 1.r1.1 has gathered 1002 bytes in 1 shares"),
        ("MAX_STORED_BYTES", 429, "all runs together hold too much"),
    ],
)
def test_what_members_gather_is_limited(busy, monkeypatch, limit, status, expected):
    monkeypatch.setattr(gathers, limit, 2000)
    path = f"{API}/allocations/1.r1.1/all_gather"

    def share(member):
        return busy.client.post(path, json={"requestUuid": member, "numPeers": 2, "data": "x" * 1000})

    async def refused():
        first = asyncio.ensure_future(share("a"))
        while not busy.catalogue.state.joined:
            await asyncio.sleep(0)
        second = await share("b")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return second

    answer = busy.run(refused())
    assert answer.status_code == status, answer.text
    assert expected in answer.text


def test_ready_and_waiting(busy):
    assert busy.post(f"{API}/allocations/1.r1.1/ready") == {}
    assert busy.post(f"{API}/allocations/1.r1.1/waiting") == {}


# -- logs


def test_log_lines_of_the_own_task(busy):
    line = {"task_id": "1.r1", "log": "hello\n", "rank_id": 3, "level": "INFO", "stdtype": "stderr"}
    more = {"task_id": "1.r1", "allocation_id": "1.r1.1", "log": "b", "timestamp": "2026-11-21T00:00:00Z"}
    assert busy.post("/task-logs", [line, more]) == {}
    (message,) = busy.journal.streams[subjects.LOGS]
    batch = msgspec.json.decode(message.body, type=LogBatch)
    assert (batch.task_id, batch.allocation_id, batch.worker_id, batch.offset) == (
        "1.r1",
        "1.r1.1",
        "w-1",
        -1,
    )
    lines = [(entry.text, entry.rank, entry.level, entry.stdtype) for entry in batch.lines]
    assert lines == [("hello", 3, "INFO", "stderr"), ("b", None, None, "stdout")]
    assert batch.lines[1].at == 1795219200.0


KEY = {"Idempotency-Key": "k"}
AT = "2026-11-21T00:00:00.25Z"


@pytest.mark.parametrize(
    ("first", "second", "headers", "stored"),
    [
        ({}, {}, KEY, 1),
        ({"timestamp": AT}, {"timestamp": AT}, {}, 1),
        # Another request with the same key loses no line.
        ({}, {"log": "b"}, KEY, 2),
        ({"timestamp": AT}, {"timestamp": AT.replace("25Z", "26Z")}, {}, 2),
        # A script may print the same again, even within a second.
        ({}, {}, {}, 2),
        ({"timestamp": AT.replace(".25Z", "Z")}, {"timestamp": AT.replace(".25Z", "Z")}, {}, 2),
    ],
)
def test_lines_that_are_sent_again_are_stored_once_where_that_can_be_told(
    busy, first, second, headers, stored
):
    line = {"task_id": "1.r1", "log": "a"}
    # More than one message.
    for more in (first, second):
        body = [line | more, line | more | {"source": "other"}]
        assert busy.send("POST", "/task-logs", body, headers=headers).status_code == 200
    assert len(busy.journal.streams[subjects.LOGS]) == 2 * stored


# -- who may


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/trials/2/searcher/operation", None),
        ("POST", "/trials/2/training_metrics", metrics(loss=1)),
        ("POST", "/trials/2/progress", 1),
        ("POST", "/trials/2/early_exit", {"reason": "EXITED_REASON_INVALID_HP"}),
        ("GET", "/allocations/1.r2.1/signals/preemption", None),
        ("POST", "/allocations/1.r2.1/signals/ack_preemption", None),
        ("POST", "/allocations/1.r2.1/all_gather", {"requestUuid": "a", "numPeers": 1}),
    ],
)
def test_nobody_speaks_for_another_trial(busy, method, path, body):
    before = len(busy.journal.streams[subjects.CONTROL])
    assert "the token is that of 1.r1.1" in busy.refused(403, method, API + path, body)
    assert len(busy.journal.streams[subjects.CONTROL]) == before


def test_nor_ships_its_lines(busy):
    answer = busy.send("POST", "/task-logs", [{"task_id": "1.r2", "allocation_id": "1.r2.1", "log": "x"}])
    assert (answer.status_code, busy.journal.streams[subjects.LOGS]) == (403, [])


def test_a_person_may_speak_for_a_trial(busy):
    busy.log_in()
    busy.post(f"{API}/trials/2/training_metrics", metrics(loss=1))
    assert len(busy.journal.streams["REPORTS"]) == 1


def test_what_is_over_or_never_was(busy):
    assert "not an allocation id" in busy.refused(400, "GET", f"{API}/allocations/x/signals/preemption")
    busy.refused(404, "GET", f"{API}/allocations/1.r9.1/signals/preemption")
    busy.refused(404, "GET", f"{API}/trials/9/searcher/operation")
    busy.log_in()
    busy.apply(stories.trial_created(4))
    text = busy.refused(400, "POST", f"{API}/trials/4/training_metrics", metrics(loss=1))
    assert "invalid run id, 1 (reported) != 0 (expected)" in text
    early = metrics(loss=1) | {"trialRunId": 0}
    assert busy.post(f"{API}/trials/4/training_metrics", early) == {}


def test_members_whose_containers_run_hear_of_one_another(busy):
    path = f"{API}/allocations/1.r1.1/notify_container_running"

    def notify(rank):
        body = {"allocationId": "1.r1.1", "requestUuid": f"n{rank}", "numPeers": 2, "rank": rank}
        return busy.client.post(path, json={**body, "nodeName": f"node{rank}", "data": {"rank": rank}})

    async def both():
        return await asyncio.gather(notify(0), notify(1))

    first, second = busy.run(both())
    assert first.json() == second.json() == {"data": [{"rank": 0}, {"rank": 1}]}
    assert "requestUuid is missing" in busy.refused(400, "POST", path, {"numPeers": 2, "data": {}})
    busy.refused(404, "POST", path.replace("1.r1.1", "1.r9.1"), {"requestUuid": "n", "numPeers": 1})

"""Experiments and trials that run outside of the cluster, over REST (REST spec, sections 3 and 4)."""

from __future__ import annotations

import pytest

from det_contracts import codec, queries, subjects
from det_contracts.events import searcher
from services.kit.rules import Call
from services.metrics.app import RULES as METRICS
from services.searcher.app import RULES as SEARCHER
from tests.gateway import stories

API = "/api/v1"
CONFIG = "name: outside\nsearcher: {name: single, metric: loss, max_length: 100}\n"


class Searcher:
    """The searcher's own rules over the gateway's log; decides on each command, and on what follows."""

    def __init__(self, gateway):
        self._gateway, self._state, self._position = gateway, SEARCHER.state(), 0
        self._touched = {}

    def fold(self):
        for message in self._gateway.journal.streams[subjects.CONTROL][self._position :]:
            recorded = codec.decode(message.body, message.position)
            self._touched.update(dict.fromkeys(SEARCHER.evolve(self._state, recorded)))
            self._position = message.position

    async def rest(self):
        self.fold()
        while self._touched:
            key = next(iter(self._touched))
            events = SEARCHER.react(self._state, key)
            if not events:
                del self._touched[key]
            await self._gateway.append(*events)
            self.fold()

    async def __call__(self, command):
        self.fold()
        result = SEARCHER.commands[type(command)](self._state, command, Call("c", 0.0))
        await self._gateway.append(*result.events)
        await self.rest()
        return result.value


@pytest.fixture
def outside(gateway):
    """A gateway beside a searcher that decides."""
    gateway.peers.on_command = Searcher(gateway)
    gateway.peers.values[queries.ReportVerdict] = lambda query: _verdict(gateway, query)
    return gateway


def _verdict(gateway, query):
    state, decode = METRICS.state(), METRICS.decode[subjects.REPORTS]
    for message in gateway.journal.streams[subjects.REPORTS]:
        list(METRICS.evolve(state, decode(message, subjects.REPORTS)))
    return METRICS.answers[queries.ReportVerdict](state, query)


def put_experiment(gateway, name="mine", **body):
    body = {"config": CONFIG, "unmanaged": True} | body
    return gateway.send("PUT", f"{API}/experiments/by-external-id/{name}", body).json()["experiment"]


def put_trial(gateway, name="first", experiment_id=1, hparams=None):
    trial_request = {"experimentId": experiment_id, "hparams": hparams, "unmanaged": True}
    body = {"externalTrialId": name, "createTrialRequest": trial_request}
    answer = gateway.send("PUT", f"{API}/trials", body)
    assert answer.status_code == 200, answer.text
    return answer.json()["trial"]


def running(gateway):
    put_experiment(gateway)
    put_trial(gateway, hparams={"lr": 0.1})
    return gateway.post(f"{API}/trials/1/start", {"trialId": 1, "resume": True})


def patch(gateway, status=200, **body):
    answer = gateway.send("PATCH", f"{API}/trials/1", {"trialId": 1} | body)
    assert answer.status_code == status, answer.text
    return answer.json()["trial"]["state"] if status == 200 else answer.json()["error"]["error"]


def facts_of(gateway, kind):
    return gateway.events_of(kind)


def report(steps=1, run=1, **values):
    return {
        "group": "training",
        "metrics": {
            "trialId": 1,
            "trialRunId": run,
            "stepsCompleted": steps,
            "metrics": {"avgMetrics": values},
        },
    }


def test_external_ids_lead_to_what_exists(outside):
    first, second = put_experiment(outside), put_experiment(outside, config="name: other")
    assert (first["id"], second["id"], second["name"]) == (1, 1, "outside")
    assert put_experiment(outside, "an/other one")["id"] == 2
    assert put_trial(outside)["id"] == put_trial(outside)["id"] == 1
    assert put_trial(outside, "a name with spaces")["id"] == 2
    assert put_trial(outside, experiment_id=2)["id"] == 3
    # The id of a task that deletes checkpoints of the experiment.
    assert put_trial(outside, "gc-1")["id"] == put_trial(outside, "gc-1")["id"] == 4
    assert "1.gc-1" not in outside.get(f"{API}/trials/4")["trial"]["taskIds"]


def test_a_run_from_start_to_end(outside):
    assert running(outside) == {"trialRunId": 1, "latestCheckpoint": None, "stepsCompleted": 0}
    assert patch(outside, state="STATE_RUNNING") == "STATE_RUNNING"
    shown = outside.get(f"{API}/experiments/1")["experiment"]
    assert (shown["state"], shown["unmanaged"], shown["resourcePool"]) == ("STATE_RUNNING", True, "")
    outside.post(f"{API}/trials/1/metrics", report(loss=0.5))
    stored = {"taskId": "1.first", "allocationId": None, "uuid": "c-1", "resources": {"x": "2"}}
    outside.post(f"{API}/checkpoints", stored | {"metadata": {"steps_completed": 1}})
    assert patch(outside, state="STATE_COMPLETED") == "STATE_COMPLETED"
    line = {"task_id": "1.first", "rank": "0", "log": "bye\n"}
    outside.post("/task-logs", [line])
    assert len(outside.journal.streams[subjects.LOGS]) == 1
    trial = outside.get(f"{API}/trials/1")["trial"]
    assert (trial["hparams"], trial["checkpointCount"], trial["state"]) == ({"lr": 0.1}, 1, "STATE_COMPLETED")
    assert trial["endTime"] is not None
    assert outside.get(f"{API}/experiments/1")["experiment"]["state"] == "STATE_COMPLETED"
    assert outside.get(f"{API}/tasks")["allocationIdToSummary"] == {}
    again = outside.post(f"{API}/trials/1/start", {"resume": True})
    assert again == {"trialRunId": 2, "latestCheckpoint": "c-1", "stepsCompleted": 1}
    trial = outside.get(f"{API}/trials/1")["trial"]
    assert (trial["state"], trial["restarts"], trial["endTime"]) == ("STATE_RUNNING", 1, None)


def test_heartbeats_are_thinned_out(outside):
    running(outside)
    for _ in range(5):
        assert patch(outside) == "STATE_RUNNING"
    assert outside.peers.published == [("alive.1", b"1")]
    outside.post(f"{API}/trials/1/start", {"resume": True})
    patch(outside)
    assert outside.peers.published[1:] == [("alive.1", b"2")]


def test_heartbeats_leave_nothing_in_the_log(outside):
    running(outside)
    before = {name: len(stream) for name, stream in outside.journal.streams.items()}
    patch(outside)
    assert outside.peers.published
    assert {name: len(stream) for name, stream in outside.journal.streams.items()} == before


def test_a_heartbeat_that_nobody_can_hear_is_said_again(outside):
    running(outside)
    outside.peers.deaf = True
    assert "try again" in patch(outside, status=503)
    outside.peers.deaf = False
    patch(outside)
    assert outside.peers.published == [("alive.1", b"1")]


def test_whatever_a_script_says_is_a_sign_of_life(outside):
    running(outside)
    outside.post(f"{API}/trials/1/metrics", report(loss=0.5))
    assert outside.peers.published == [("alive.1", b"1")]


def test_the_operation_is_the_length_of_the_configuration(outside):
    running(outside)
    answer = outside.get(f"{API}/trials/1/searcher/operation")
    assert (answer["op"]["validateAfter"]["length"], answer["completed"]) == ("100", False)


def test_a_killed_script_hears_of_it(outside):
    running(outside)
    outside.post(f"{API}/trials/1/kill")
    assert outside.get(f"{API}/trials/1")["trial"]["state"] == "STATE_CANCELED"
    assert "is canceled" in patch(outside, 400)
    assert "killed by determined" in outside.refused(400, "POST", f"{API}/trials/1/metrics", report(loss=1))
    assert "has already ended as CANCELED" in patch(outside, 400, state="STATE_COMPLETED")
    assert outside.journal.streams["REPORTS"] == []


def test_a_script_is_asked_to_leave_when_it_is_stopped(outside):
    running(outside)
    path = f"{API}/allocations/1.first/signals/preemption"
    assert outside.get(path, timeout_seconds=0) == {"preempt": False}
    outside.post(f"{API}/experiments/1/cancel")
    assert outside.get(path, timeout_seconds=20) == {"preempt": True}
    outside.post(f"{API}/trials/1/start", {"resume": True})
    assert outside.get(path, timeout_seconds=0) == {"preempt": False}
    patch(outside, state="STATE_COMPLETED")
    outside.refused(404, "GET", path)


def test_old_runs_report_nothing(outside):
    running(outside)
    outside.post(f"{API}/trials/1/start", {"resume": True})
    text = outside.refused(400, "POST", f"{API}/trials/1/metrics", report(loss=1))
    assert text == "invalid run id, 1 (reported) != 2 (expected)"
    live = outside.get(f"{API}/tasks")["allocationIdToSummary"]
    assert list(live) == ["1.first.2"]


def test_nothing_is_needed_and_nothing_of_the_cluster_is_tried(outside):
    config = "checkpoint_storage: {type: shared_fs, host_path: /proc/nowhere}\nname: null\n"
    shown = outside.post(f"{API}/experiments", {"config": config, "unmanaged": True})
    assert shown["experiment"]["state"] == "STATE_ACTIVE"
    assert shown["warnings"] == []
    assert (shown["config"]["searcher"]["name"], shown["config"]["entrypoint"]) == ("single", None)
    created = outside.post(f"{API}/trials", {"experimentId": 1, "hparams": None, "unmanaged": True})
    assert (created["trial"]["hparams"], created["trial"]["state"]) == ({}, "STATE_ACTIVE")


def test_a_repeated_creation_is_one(outside):
    put_experiment(outside)
    ids = [
        outside.post(f"{API}/trials", {"experimentId": 1}, headers={"Idempotency-Key": key})["trial"]["id"]
        for key in ("k", "k", "l")
    ]
    assert ids == [1, 1, 2]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("POST", "/trials", {"experimentId": 9}, 404, "experiment '9' not found"),
        ("POST", "/trials", {}, 400, "experimentId"),
        ("POST", "/trials", {"experimentId": 2}, 400, "is managed"),
        ("PUT", "/trials", {"createTrialRequest": {"experimentId": 1}}, 400, "1 to 1000 characters"),
        ("POST", "/trials", {"experimentId": 1, "hparams": {"x": "y" * (1 << 20)}}, 400, "larger than"),
        ("POST", "/trials/9/start", {}, 404, "trial '9' not found"),
        ("POST", "/trials/2/start", {}, 400, "is managed"),
        ("POST", "/trials/1/start", {}, 400, "start it with resume"),
        ("PATCH", "/trials/2", {}, 400, "is managed"),
        ("PATCH", "/trials/2", {"state": "STATE_COMPLETED"}, 400, "is managed"),
        ("PATCH", "/trials/1", {"state": "STATE_PAUSED"}, 400, "a script may say RUNNING"),
        ("PATCH", "/trials/3", {}, 400, "has not started"),
        ("POST", "/experiments/1/pause", {}, 400, "is unmanaged"),
        ("PATCH", "/experiments/1", {"resources": {"priority": 3}}, 400, "no place in the queue"),
    ],
)
def test_what_makes_no_sense_is_refused(outside, method, path, body, status, text):
    running(outside)
    outside.apply(stories.created(2))
    outside.run(outside.peers.on_command.rest())
    put_trial(outside, "third")
    before = len(outside.journal.streams[subjects.CONTROL])
    assert text in outside.refused(status, method, API + path, body)
    assert len(outside.journal.streams[subjects.CONTROL]) == before


def test_why_tells_its_life(outside):
    running(outside)
    patch(outside, state="STATE_ERROR")
    answer = outside.get(f"{API}/why/trial/1")
    text = " / ".join(step["what"] for step in answer["steps"])
    assert "trial 1 ended in error" in text
    assert "a script outside the cluster ran trial 1, run 1" in text
    assert facts_of(outside, searcher.RunRequested) == []

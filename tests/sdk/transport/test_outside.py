"""The facts of a trial outside of the cluster, over REST: in order, once, none lost in an outage."""

from __future__ import annotations

import io
import sys

import pytest

from det_contracts import checkpoint_ids
from determined.common.api import errors
from determined.experimental._own_output import OwnOutput
from determined.transport import outside
from determined.transport.outside import OutsideTransport, Place
from determined.transport.protocol import MetricReport, NeverStored, StoredCheckpoint
from determined.transport.rest import Session
from tests.fixtures.local_cluster import wait_for
from tests.sdk.fake_gateway import Status

TRIAL = "/api/v1/trials/9"
SIGNALS = "/api/v1/allocations/7.t/signals/preemption"


@pytest.fixture
def transport(gateway, client_home, monkeypatch):
    monkeypatch.setattr(outside, "PAUSE_S", 0)
    monkeypatch.setattr(outside, "POLL_S", 0.01)
    gateway.answer("PATCH", TRIAL, {})
    gateway.answer("POST", f"{TRIAL}/metrics", {})
    gateway.answer("GET", SIGNALS, {"preempt": False})
    made = OutsideTransport(lambda: Session(gateway.url, pauses=()), Place(7, 9, "7.t", 2))
    made.start()
    yield made
    made.close()


def steps(gateway):
    return [call.json["metrics"]["stepsCompleted"] for call in gateway.calls_to("POST", f"{TRIAL}/metrics")]


def report(step):
    return MetricReport("training", step, {"loss": 1.0})


def test_reports_leave_in_order_with_the_run(gateway, transport):
    for step in range(5):
        transport.report(report(step))
    transport.flush()
    assert steps(gateway) == list(range(5))
    first = gateway.calls_to("POST", f"{TRIAL}/metrics")[0].json
    assert (first["group"], first["metrics"]["trialRunId"]) == ("training", 2)
    assert first["metrics"]["metrics"] == {"avgMetrics": {"loss": 1.0}, "batchMetrics": None}


def test_what_nobody_answers_is_said_again_until_somebody_does(gateway, transport):
    again = Status(
        400, {"message": "overwriting existing metric keys is not supported, conflicting key: loss"}
    )
    gateway.answer("POST", f"{TRIAL}/metrics", Status(503), Status(503), again, {})
    transport.report(report(1))
    transport.report(report(2))
    transport.flush()
    assert steps(gateway) == [1, 1, 1, 2], "a repeat that was taken before is no refusal"


PAGE = "<html>back in a minute</html>"


@pytest.mark.parametrize(
    "answer",
    [PAGE, Status(429, {"message": "too much"}, {"Retry-After": "3600"})],
    ids=["a proxy's page", "too many requests"],
)
def test_what_no_master_has_taken_is_said_again(gateway, transport, answer):
    gateway.answer("POST", f"{TRIAL}/metrics", answer, answer, {})
    transport.report(report(1))
    transport.report(report(2))
    wait_for(lambda: steps(gateway) == [1, 1, 1, 2], 60, "both reports")
    transport.flush()


def test_signs_of_life_go_on_after_a_page_of_a_proxy(gateway, transport):
    """Otherwise the trial would count as dead, and its script would not hear that it is to leave."""
    gateway.answer("GET", SIGNALS, PAGE, {"preempt": True})
    wait_for(transport.preempted, 60, "the signal")


def test_an_error_in_sending_ends_no_later_report(gateway, transport, monkeypatch):
    ask, errors = transport._ask, [ValueError("a defect")]

    def failing(*arguments, **options):
        if errors:
            raise errors.pop()
        return ask(*arguments, **options)

    monkeypatch.setattr(transport, "_ask", failing)
    transport.report(report(1))
    transport.report(report(2))
    wait_for(lambda: steps(gateway) == [2], 60, "the second report")
    with pytest.raises(RuntimeError, match="a defect"):
        transport.flush()


def test_a_refusal_is_raised_once_by_a_later_call(gateway, transport):
    gateway.answer("POST", f"{TRIAL}/metrics", Status(400, {"message": "invalid run id"}), {})
    transport.report(report(1))
    with pytest.raises(RuntimeError, match="invalid run id"):
        transport.flush()
    transport.flush()


def test_a_checkpoint_waits_for_the_reports_before_it(gateway, transport):
    gateway.answer("POST", "/api/v1/checkpoints", {})
    transport.report(report(3))
    transport.checkpoint(StoredCheckpoint("u", {"a": 1}, {"steps_completed": 3}))
    paths = [call.path for call in gateway.calls if call.method == "POST"]
    assert paths == [f"{TRIAL}/metrics", "/api/v1/checkpoints"]
    assert gateway.calls_to("POST", "/api/v1/checkpoints")[0].json["taskId"] == "7.t"


def test_what_a_script_reported_counts_in_the_best_validation(gateway, transport):
    path = "/api/v1/experiments/7/searcher/best_searcher_validation_metric"
    gateway.answer("GET", path, {"metric": 0.5})
    transport.report(report(3))
    assert transport.best_validation() == 0.5
    paths = [call.path for call in gateway.calls if call.path in (f"{TRIAL}/metrics", path)]
    assert paths == [f"{TRIAL}/metrics", path]


def test_only_its_trial_can_register_an_id_that_it_chose(gateway, transport):
    """Whoever lists a shared storage sees the ids of others before they are registered."""
    gateway.answer("POST", "/api/v1/checkpoints", Status(503), {})
    ids = [transport.new_checkpoint_id() for _ in range(2)]
    for id in reversed(ids):
        transport.checkpoint(StoredCheckpoint(id, {"a": 1}, {"steps_completed": 3}))
    first, repeated, second = (call.json for call in gateway.calls_to("POST", "/api/v1/checkpoints"))
    assert first == repeated
    for body, id in ((first, ids[1]), (second, ids[0])):
        assert body["uuid"] == id
        assert checkpoint_ids.may_register(9, id, body["secret"])
        assert not any(checkpoint_ids.may_register(10, id, secret) for secret in ("", body["secret"]))


def test_the_operation_and_its_end(gateway, transport):
    path = f"{TRIAL}/searcher/operation"
    open = {"op": {"validateAfter": {"length": "4"}}, "completed": False}
    gateway.answer("GET", path, open, open | {"completed": True})
    gateway.answer("POST", f"{TRIAL}/searcher/completed_operation", {})
    op = transport.operation()
    assert op.length == 4
    transport.complete(op.seq, op.length, 0.5)
    (call,) = gateway.calls_to("POST", f"{TRIAL}/searcher/completed_operation")
    assert call.json == {"op": {"length": 4}, "searcherMetric": 0.5}
    assert transport.operation() is None


def test_it_hears_that_it_is_to_leave(gateway, transport):
    assert not transport.preempted()
    gateway.answer("GET", SIGNALS, {"preempt": True})
    wait_for(transport.preempted, 60, "the signal")


@pytest.mark.parametrize("ending", ["COMPLETED", "ERROR"])
def test_the_state_of_an_ended_trial_is_sent_once(gateway, transport, ending):
    transport.report(report(1))
    transport.ending = ending
    transport.close()
    transport.close()
    ends = [call.json for call in gateway.calls_to("PATCH", TRIAL) if call.json]
    assert ends == [{"state": f"STATE_{ending}"}]
    assert steps(gateway) == [1]


def test_output_is_shown_and_handed_on(monkeypatch):
    shown, shipped = io.StringIO(), []
    monkeypatch.setattr(sys, "stdout", shown)
    output = OwnOutput(shipped.extend, rank=3)
    print("one\ntwo")
    print("rest", end="")
    output.close()
    print("after")
    assert shown.getvalue() == "one\ntwo\nrestafter\n"
    assert [(line["log"], line["stdtype"], line["rank"]) for line in shipped] == [
        ("one", "stdout", 3),
        ("two", "stdout", 3),
        ("rest", "stdout", 3),
    ]


@pytest.mark.parametrize("answers", [[Status(403)], [Status(503), Status(403)]])
def test_only_a_refusal_before_which_no_answer_was_lost_is_certain(gateway, transport, answers):
    """Files of a checkpoint that may be registered must not be removed."""
    gateway.answer("POST", "/api/v1/checkpoints", *answers)
    with pytest.raises((NeverStored, errors.ForbiddenException)) as refusal:
        transport.checkpoint(StoredCheckpoint("u", {"a": 1}, {"steps_completed": 3}))
    assert isinstance(refusal.value, NeverStored) == (len(answers) == 1)

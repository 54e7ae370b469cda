"""How long each call of a script waits while the cluster is away: the whole list, held to the protocol.

No test looks at a clock. What a call is ready to wait is what it asks `concurrent.futures.wait` for.
"""

import asyncio
import concurrent.futures
import functools
import inspect
import json
import threading
from concurrent.futures import Future

import pytest

from det_contracts import codec, subjects
from det_contracts.events import trial
from determined import ClusterInfo, TrialInfo
from determined.core import DummyDistributedContext, PreemptContext
from determined.transport import bus, cluster_news, questions, waiting
from determined.transport.bus import BusTransport
from determined.transport.bus_thread import BusThread
from determined.transport.protocol import Answers, MetricReport, StoredCheckpoint, Transport
from determined.transport.waiting import Patience
from tests.fixtures.local_cluster import wait_for

TRIAL, RUN = 7, 1
STORED = StoredCheckpoint("u", {}, {"steps_completed": 3})

NEVER = {
    "report": lambda to: to.report(MetricReport("training", 1, {"loss": 1.0})),
    "progress": lambda to: to.progress(1.0),
    "set_status": lambda to: to.set_status("training"),
    "new_checkpoint_id": lambda to: to.new_checkpoint_id(),
}
ONCE = {
    "preempted": (lambda to: to.preempted(), bus.FIRST_ANSWER_S),
    "best_validation": (lambda to: to.best_validation(), questions.ANSWER_S),
    "storage_refusal": (lambda to: to.storage_refusal(1), questions.QUOTA_S),
    "checkpoint": (lambda to: to.checkpoint(STORED), bus.FACT_S),
    "acknowledge_preemption": (lambda to: to.acknowledge_preemption(), bus.FACT_S),
    "exit_early": (lambda to: to.exit_early("EXITED_REASON_INVALID_HP"), bus.FACT_S),
}
AS_LONG_AS_IT_TAKES = {
    "operation": lambda to: to.operation(),
    "complete": lambda to: to.complete(1, 10, 0.5),
    "checkpoint_metadata": lambda to: to.checkpoint_metadata("u"),
    "flush": lambda to: to.flush(),
    "close": lambda to: to.close(),
}
PREPARES = {"start"}


def test_each_call_is_in_the_list():
    methods = {
        name for kind in (Answers, Transport) for name, _ in inspect.getmembers(kind, inspect.isfunction)
    }
    methods = {name for name in methods if not name.startswith("_")}
    assert methods == {*NEVER, *ONCE, *AS_LONG_AS_IT_TAKES, *PREPARES}


class Cluster:
    """A connection that brings nothing until `back` is called; then it answers as a cluster does."""

    max_payload = 8 << 20
    is_closed = False

    def __init__(self):
        self.away = True
        self.stored = []
        self.subjects = []
        self.stored_before = []
        """For each question, how many messages were stored when it came."""

    async def request(self, subject, body, **options):
        if self.away:
            raise OSError("away")
        if subject.startswith("ask."):
            self.subjects.append(subject)
            self.stored_before.append(len(self.stored))
            answer = {"steps_completed": 3} if "metadata" in subject else 0.25
            return self._reply({"value": answer})
        self.stored.append((subject, body))
        return self._reply({"seq": 1})

    @staticmethod
    def _reply(answer):
        return type("Reply", (), {"data": json.dumps(answer).encode()})

    async def close(self):
        self.is_closed = True

    def facts(self, kind):
        bodies = [body for subject, body in self.stored if subject.startswith("witness.")]
        return [event for body in bodies if isinstance(event := codec.decode(body, 0).event, kind)]


class Thread(BusThread):
    """A thread on such a connection; it hears of an operation, and of the next when that is completed."""

    def __init__(self):
        super().__init__(["nats://nats:4222"], None, "_INBOX")
        self.cluster = Cluster()

    async def _connect(self):
        return self.cluster

    async def wait_for_news(self, subject, body, within_s, hurry):
        while self.cluster.away:
            await asyncio.sleep(0.01)
        owner = subject.split(".")[3]
        ask = json.loads(body)
        if owner == "searcher":
            while ask["seen"] and not self.cluster.facts(trial.OperationCompleted):
                await asyncio.sleep(0.01)
            if ask["seen"] is None or ask["seen"]["seq"] == 1:
                seq = 2 if self.cluster.facts(trial.OperationCompleted) else 1
                return json.dumps({"value": {"seq": seq, "length": 10 + seq}}).encode()
        elif owner == "scheduler" and ask["seen"] is None:
            return json.dumps({"value": {"leave": False}}).encode()
        await asyncio.Event().wait()


def made(searcher):
    own = TrialInfo(TRIAL, 3, 1, {}, {"searcher": searcher}, 0, RUN, False)
    info = ClusterInfo("http://x", "c", "a", [0], "3.t", "3.t.1", "s", "TRIAL", trial_info=own)
    transport = BusTransport(info, Thread())
    transport.start()
    return transport


@pytest.fixture
def transport():
    transport = made({"metric": "loss"})
    yield transport
    transport._thread.cluster.away = False
    transport.close()


@pytest.fixture
def waits(monkeypatch):
    """The seconds that calls were ready to wait; none of them passes."""
    timeouts = []
    real = concurrent.futures.wait

    def wait(futures, timeout=None, **options):
        timeouts.append(timeout)
        return real(futures, 0, **options)

    monkeypatch.setattr(waiting.concurrent.futures, "wait", wait)
    return timeouts


@pytest.mark.parametrize("call", NEVER)
def test_what_never_waits(call, transport, waits):
    for _ in range(1000):
        NEVER[call](transport)
    assert waits == []


@pytest.mark.parametrize("call", ONCE)
def test_what_waits_once_in_an_outage(call, transport, waits):
    do, seconds = ONCE[call]
    for _ in range(1000):
        do(transport)
    assert sum(waits) == seconds


@pytest.mark.parametrize("call", AS_LONG_AS_IT_TAKES)
def test_what_waits_as_long_as_it_takes_goes_on_when_the_cluster_is_back(
    call, transport, monkeypatch, caplog
):
    for module in (waiting, cluster_news):
        monkeypatch.setattr(module, "TOLD_EVERY_S", 0.01)
    monkeypatch.setattr("determined.transport.outbox.PATIENCE_S", 0.01)
    NEVER["report"](transport)
    done = Future()
    script = threading.Thread(target=lambda: done.set_result(AS_LONG_AS_IT_TAKES[call](transport)))
    script.start()
    wait_for(lambda: "waiting for the cluster" in caplog.text, 60, f"{call} to say what it waits for")
    assert not done.done()
    transport._thread.cluster.away = False
    done.result(60)
    script.join()
    transport.close()
    assert transport._thread.cluster.stored[0][0] == subjects.reports(TRIAL)


def test_the_patience_begins_anew_after_an_outage(waits):
    patience, first, second = Patience(5.0), Future(), Future()
    assert [patience.lasts(first), patience.lasts(second)] == [False, False]
    first.set_result(None)
    assert not patience.lasts(second)
    second.set_result(None)
    assert patience.lasts(second)
    assert waits == [5.0, 0, 5.0, 5.0]


def test_a_training_loop_goes_on_while_the_cluster_is_away_from_the_start(transport, waits):
    with PreemptContext(transport, DummyDistributedContext()) as preempt:
        assert [preempt.should_preempt() for _ in range(500)] == [False] * 500
    assert sum(waits) == bus.FIRST_ANSWER_S


def test_of_progress_and_status_in_an_outage_only_the_last_word_is_kept(transport, monkeypatch):
    monkeypatch.setattr(bus, "PROGRESS_EVERY_S", 0.0)
    for done in range(1, 1001):
        transport.progress(float(done))
        transport.set_status(f"at {done}")
    cluster = transport._thread.cluster
    cluster.away = False
    wait_for(
        lambda: cluster.facts(trial.Progressed)[-1:] == [trial.Progressed(TRIAL, RUN, 1000.0)], 60, "progress"
    )
    wait_for(
        lambda: cluster.facts(trial.StatusSet)[-1:] == [trial.StatusSet(TRIAL, RUN, "at 1000")], 60, "status"
    )
    assert len(cluster.facts(trial.Progressed)) <= 2
    assert len(cluster.facts(trial.StatusSet)) <= 2


def test_a_custom_search_hears_of_each_progress_as_far_as_a_script_can_mean_it(monkeypatch):
    monkeypatch.setattr(bus, "PROGRESS_AT_ONCE", 5)
    monkeypatch.setattr(bus, "PROGRESS_PER_S", 0.0)
    transport = made({"name": "custom", "metric": "loss"})
    for done in range(1, 51):
        transport.progress(float(done))
    cluster = transport._thread.cluster
    cluster.away = False
    wait_for(lambda: len(cluster.facts(trial.Progressed)) >= 5, 60, "the progress")
    transport.complete(1, 11, 0.5)
    transport.close()
    units = [fact.units for fact in cluster.facts(trial.Progressed)]
    assert units[:5] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(units) <= 6, "beyond that it is thinned out"
    kinds = [type(codec.decode(body, 0).event) for subject, body in cluster.stored if "witness" in subject]
    assert trial.OperationCompleted in kinds[5:], "in the order in which the script said it"


def test_a_metric_reported_twice_raises_at_the_call(transport):
    report = functools.partial(MetricReport, "training")
    transport.report(report(5, {"loss": 1.0}))
    transport.report(report(5, {"accuracy": 1.0}))
    with pytest.raises(RuntimeError, match="conflicting key: loss"):
        transport.report(report(5, {"loss": 2.0}))
    transport.report(MetricReport("validation", 5, {"loss": 2.0}))
    transport.report(report(6, {"loss": 2.0}))


def test_facts_of_an_outage_arrive_in_order_behind_the_reports_before_them(transport, waits):
    NEVER["report"](transport)
    transport.checkpoint(STORED)
    NEVER["report"](transport)
    transport.acknowledge_preemption()
    transport._thread.cluster.away = False
    wait_for(lambda: len(transport._thread.cluster.stored) == 4, 60, "all to be stored")
    kinds = [_kind(subject, body) for subject, body in transport._thread.cluster.stored]
    assert kinds == ["metrics", "CheckpointStored", "metrics", "PreemptionAcknowledged"]


def _kind(subject, body):
    stated = subject == subjects.witness_of_trial(TRIAL)
    return type(codec.decode(body, 0).event).__name__ if stated else subject.rpartition(".")[2]


def test_the_best_validation_of_an_outage_is_the_last_answer(transport, waits, caplog):
    cluster = transport._thread.cluster
    assert transport.best_validation() is None
    assert "does not report the best validation" in caplog.text
    cluster.away = False
    wait_for(transport.best_validation, 60, "an answer")
    cluster.away = True
    assert [transport.best_validation() for _ in range(3)] == [0.25] * 3


@pytest.mark.parametrize(
    "ask", [lambda to: to.best_validation(), lambda to: to.checkpoint_metadata("u")], ids=["best", "metadata"]
)
def test_what_a_script_reported_is_stored_before_its_question_is_sent(transport, ask):
    transport._thread.cluster.away = False
    for step in (1, 2, 3):
        transport.report(MetricReport("validation", step, {"loss": 1.0}))
        ask(transport)
    assert transport._thread.cluster.stored_before == [1, 2, 3]


def test_the_answer_to_an_earlier_question_is_not_taken_for_one_after_the_last_report(transport):
    questions = transport._questions
    questions._answers = Patience(0)
    assert transport.best_validation() is None
    transport.report(MetricReport("validation", 1, {"loss": 1.0}))
    questions._answers = Patience(60)
    transport._thread.cluster.away = False
    assert transport.best_validation() == 0.25
    assert transport._thread.cluster.stored_before[-1] == 1

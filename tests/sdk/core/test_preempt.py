import pytest

from determined.core import (
    DummyDistributedContext,
    DummyPreemptContext,
    PreemptContext,
    PreemptMode,
    TrainContext,
)
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.core.thread_ranks import run_ranks


def test_the_first_true_is_acknowledged_once_and_after_reports():
    transport = FakeTransport(preempt_after=1)
    train = TrainContext(transport, DummyDistributedContext())
    with PreemptContext(transport, DummyDistributedContext()) as preempt:
        train.report_training_metrics(1, {"x": 1})
        assert preempt.should_preempt() is False
        assert transport.log == []
        assert preempt.should_preempt() is True
        assert preempt.should_preempt() is True
    assert transport.kinds() == ["training", "acknowledged"]


def test_without_auto_ack_the_script_acknowledges():
    transport = FakeTransport(preempt_after=0)
    with PreemptContext(transport, DummyDistributedContext()) as preempt:
        assert preempt.should_preempt(auto_ack=False)
        assert transport.log == []
        preempt.acknowledge_preemption_signal()
        assert preempt.should_preempt()
    assert transport.kinds() == ["acknowledged"]


@pytest.mark.parametrize("make", [lambda d: PreemptContext(FakeTransport(), d), DummyPreemptContext])
def test_it_must_be_started_once(make):
    preempt = make(DummyDistributedContext())
    with pytest.raises(RuntimeError, match=r"cannot call.*should_preempt.*before.*start"):
        preempt.should_preempt()
    preempt.start()
    with pytest.raises(RuntimeError, match="twice"):
        preempt.start()
    assert preempt.should_preempt() is False
    preempt.close()
    preempt.close()


def _ask(mode, calls=2):
    def rank(dist):
        transport = FakeTransport(preempt_after=1 if dist.rank == 0 else 0)
        with PreemptContext(transport, dist, mode) as preempt:
            answers = [preempt.should_preempt() for _ in range(calls)]
        return answers, transport.calls.count("preempted"), transport.kinds()

    return run_ranks(2, rank)


def test_workers_ask_chief_and_get_its_answer_at_the_same_call():
    chief, worker = _ask(PreemptMode.WorkersAskChief)
    assert chief == ([False, True], 2, ["acknowledged"])
    assert worker == ([False, True], 0, [])


def test_workers_ask_master_each_on_its_own():
    chief, worker = _ask("WORKERS_ASK_MASTER")
    assert chief == ([False, True], 2, ["acknowledged"])
    assert worker == ([True, True], 2, ["acknowledged"])


def test_chief_only_refuses_other_ranks():
    chief, worker = _ask(PreemptMode.ChiefOnly)
    assert chief == ([False, True], 2, ["acknowledged"])
    with pytest.raises(RuntimeError, match=r"should_preempt.*called from non-chief"):
        raise worker


def test_exactly_one_broadcast_of_a_bool_per_call():
    received = []

    class Overheard(DummyDistributedContext):
        def broadcast(self, stuff):
            received.append(stuff)
            return stuff

    for mode, expected in [(PreemptMode.WorkersAskChief, [False]), (PreemptMode.ChiefOnly, [])]:
        received.clear()
        with DummyPreemptContext(Overheard(), mode) as preempt:
            assert preempt.should_preempt() is False
        assert received == expected

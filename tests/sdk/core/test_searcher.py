import pytest

from determined.core import (
    DummyDistributedContext,
    DummySearcherContext,
    DummySearcherOperation,
    SearcherContext,
    SearcherMode,
    TrainContext,
    Unit,
)
from determined.core._searcher import configured_units
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.core.thread_ranks import run_ranks


def context(lengths, dist=None):
    transport = FakeTransport(lengths)
    return transport, SearcherContext(transport, dist or DummyDistributedContext())


def test_operations_are_completed_in_order_and_the_end_is_acknowledged():
    transport, searcher = context([10, 25])
    for op in searcher.operations():
        op.report_progress(op.length - 1)
        op.report_completed(float("nan") if op.length == 10 else {"any": "json"})
        op.report_progress(op.length)
    assert transport.log == [
        ("completed", 0, 10, "NaN"),
        ("completed", 1, 25, {"any": "json"}),
        ("acknowledged",),
    ]
    assert transport.calls == ["progress 9.0", "progress 10.0", "progress 24.0", "progress 25.0"]


def test_reports_are_stored_before_the_completion():
    transport, searcher = context([1])
    train = TrainContext(transport, DummyDistributedContext())
    for op in searcher.operations(auto_ack=False):
        train.report_training_metrics(1, {"x": 1})
        train.report_validation_metrics(1, {"x": 1})
        op.report_completed(1.0)
    assert transport.kinds() == ["training", "validation", "completed"]


def test_an_operation_must_be_completed():
    _, searcher = context([10])
    operations = searcher.operations()
    next(operations)
    with pytest.raises(RuntimeError, match=r"you must call op\.report_completed\(\) on each operation"):
        next(operations)


def test_leaving_early_gives_the_same_operation_again():
    transport, searcher = context([10])
    for op in searcher.operations():
        assert op.length == 10
        break
    assert next(searcher.operations()).length == 10
    assert transport.log == []


def test_completion_happens_once():
    _, searcher = context([10])
    op = next(searcher.operations())
    op.report_completed(1)
    with pytest.raises(RuntimeError, match=r"only call op\.report_completed\(\) once"):
        op.report_completed(1)
    with pytest.raises(RuntimeError, match="after op"):
        op.report_progress(11)


def test_progress_that_is_no_number_is_left_out(caplog):
    transport, searcher = context([10])
    op = next(searcher.operations())
    for value in (float("nan"), float("inf"), 3):
        op.report_progress(value)
    assert transport.calls[-1] == "progress 3.0"
    assert not any("nan" in call or "inf" in call for call in transport.calls)
    assert "op.report_progress(nan) is ignored" in caplog.text


def test_an_unserializable_metric_leaves_the_operation_open():
    transport, searcher = context([10])
    op = next(searcher.operations())
    with pytest.raises(TypeError, match="Unserializable"):
        op.report_completed(object())
    with pytest.raises(
        ValueError, match="searcher_metric has 65,537 bytes of JSON: at most 65,536 are taken"
    ):
        op.report_completed("x" * 65_535)
    op.report_completed(1)
    assert transport.log == [("completed", 0, 10, 1)]


def test_workers_follow_the_chief_and_never_ask_the_cluster():
    def rank(dist):
        transport, searcher = context([3, 5] if dist.rank == 0 else [], dist)
        lengths = []
        for op in searcher.operations():
            lengths.append(op.length)
            if dist.rank == 0:
                op.report_completed(1)
            else:
                with pytest.raises(RuntimeError, match=r"op.report_completed.*chief"):
                    op.report_completed(1)
                with pytest.raises(RuntimeError, match=r"op.report_progress.*chief"):
                    op.report_progress(1)
        return lengths, transport.kinds()

    chief, worker = run_ranks(2, rank)
    assert chief == ([3, 5], ["completed", "completed", "acknowledged"])
    assert worker == ([3, 5], [])


def test_exactly_one_broadcast_of_a_number_or_none_per_operation():
    received = []

    class Overheard(DummyDistributedContext):
        def broadcast(self, stuff):
            received.append(stuff)
            return stuff

    _, searcher = context([3, 5], Overheard())
    for op in searcher.operations():
        op.report_completed(0)
    assert received == [3, 5, None]
    _, searcher = context([3], Overheard())
    for op in searcher.operations(SearcherMode.ChiefOnly):
        op.report_completed(0)
    assert received == [3, 5, None]


def test_chief_only_refuses_other_ranks():
    def rank(dist):
        _, searcher = context([3], dist)
        operations = searcher.operations("CHIEF_ONLY")
        return next(operations).length

    length, error = run_ranks(2, rank)
    assert length == 3
    assert isinstance(error, RuntimeError)
    with pytest.raises(RuntimeError, match=r"searcher.operations.*non-chief"):
        raise error


def test_both_spellings_of_chief_only():
    assert SearcherMode("CHEIF_ONLY") is SearcherMode("CHIEF_ONLY") is SearcherMode.ChiefOnly
    with pytest.raises(ValueError, match="not a valid"):
        SearcherMode("NOBODY")


@pytest.mark.parametrize(
    ("searcher", "unit"),
    [
        ({"max_length": 10}, None),
        ({"max_length": {"batches": 10}}, Unit.BATCHES),
        ({"max_length": {"epochs": 10}}, Unit.EPOCHS),
        ({"unit": "records", "max_length": 10}, Unit.RECORDS),
        ({"unit": None, "max_length": None}, None),
    ],
)
def test_configured_units(searcher, unit):
    assert configured_units({"searcher": searcher}) is unit


def test_off_cluster_each_loop_has_one_operation():
    searcher = DummySearcherContext(DummyDistributedContext(), length=4)
    assert searcher.get_configured_units() is Unit.EPOCHS
    for _ in range(2):
        for op in searcher.operations():
            assert op.length == 4
            op.report_progress(2)
            op.report_completed(0.5)
            break
        assert [op.length for op in completed(searcher.operations())] == [4]
    with pytest.raises(RuntimeError, match="you must call"):
        list(searcher.operations())
    with pytest.raises(RuntimeError, match="chief"):
        DummySearcherOperation(1, is_chief=False).report_completed(1)


def completed(operations):
    for op in operations:
        op.report_completed(0)
        yield op

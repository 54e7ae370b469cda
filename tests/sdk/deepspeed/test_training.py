"""Real DeepSpeed, two ranks with gloo between them, on processor cores."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.fixtures.ranks import new_interpreter, run_ranks

pytestmark = [
    pytest.mark.full,
    pytest.mark.live,
    # DeepSpeed compiles a part of itself at its first start on a machine.
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed"),
]
SCRIPT = Path(__file__).with_name("trials.py")


@pytest.fixture
def ranks(folder):
    """A function that runs one of trials.py's on so many ranks; returns what each left."""

    def run(name, *arguments, count=2):
        words = [SCRIPT, name, folder, *map(str, arguments)]
        run_ranks(new_interpreter, words, count=count, within_s=540, DS_ACCELERATOR="cpu")
        return [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(count)]

    return run


def test_batches_of_micro_batches_epochs_and_metrics(ranks):
    first, second = ranks("whole")
    assert first["weights"] == second["weights"]
    # 12 micro batches a pass, 6 on each rank, two in a batch: epochs of 3.
    assert first["epochs"] == [0, 1, 2]
    assert len(first["losses"]) == len(second["losses"]) == 14
    # A window of one batch has a metric for each of its two calls, which is the mean over both ranks.
    both = [(a + b) / 2 for a, b in zip(first["losses"], second["losses"], strict=True)]
    assert [count for _, count in first["windows"]] == [2] * 7
    assert first["windows"] == second["windows"]
    assert first["windows"][0][0] == pytest.approx((both[0] + both[1]) / 2)
    # Both ranks together see every record of an epoch once.
    records = sorted(r for rank in (first, second) for micro in rank["records"][:6] for r in micro)
    assert records == list(range(24))
    # Validation: the mean over all 12 micro batches; the first records are 0, 2, ..., 22 tenths.
    assert first["validations"][0]["first"] == pytest.approx(1.1)


@pytest.mark.parametrize("stage", [0, 1])
def test_a_resumed_run_is_the_one_that_was_never_stopped(ranks, stage):
    for rank in ranks("resumed", stage):
        whole, stopped, continued = rank
        assert len(stopped["losses"]) == 6
        assert stopped["records"] + continued["records"] == whole["records"]
        assert stopped["losses"] + continued["losses"] == whole["losses"]
        assert continued["weights"] == whole["weights"]


def test_micro_batches_by_hand(ranks):
    first, _ = ranks("by_hand")
    assert len(first["losses"]) == 4
    assert [count for _, count in first["windows"]] == [1, 1]


def test_an_engine_out_of_step_is_reported(ranks):
    (message,) = ranks("out_of_step", count=1)
    assert "has trained 1 micro batches after a batch" in message


def test_a_pipeline_of_two_stages(ranks):
    first, last = ranks("pipeline")
    assert first["pipeline"]
    assert (first["reports"], last["reports"]) == (False, True)
    assert all(first["had_data"])
    # All ranks of a pipeline are one: 12 micro batches a pass, two in a batch.
    assert first["epoch"] == 6
    assert [count for _, count in first["windows"]] == [1] * 6
    assert first["windows"] == last["windows"]
    assert first["validations"] == last["validations"]
    before, after = (validation["validation_loss"] for validation in first["validations"])
    assert after < before

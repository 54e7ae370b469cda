"""Two ranks, two processes, gloo between them: what the spec says of several ranks."""

import json
from pathlib import Path

import pytest

from determined import pytorch
from determined.pytorch import Batch
from tests.fixtures.ranks import new_interpreter, run_ranks
from tests.sdk.pytorch.trials import Random

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
SCRIPT = Path(__file__).with_name("rank_script.py")


@pytest.fixture
def both(folder, fork_server):
    """A function that runs one of rank_script's on two ranks; returns what each left."""

    def run(name, *arguments, start=fork_server.start):
        run_ranks(start, [SCRIPT, name, folder, *map(str, arguments)])
        return [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(2)]

    return run


def plain_descent(*groups, rate=0.001):
    """Weight after steps on all records of a group together: y = w x, targets x."""
    weight = 0.0
    for records in groups:
        weight -= rate * sum(2 * x * (weight * x - x) for x in records) / len(records)
    return weight


@pytest.mark.full
def test_gradients_are_those_of_all_records_of_all_ranks(both):
    first, second = both("gradients")
    assert first == second
    expected = {
        "1 1": plain_descent(range(4)),
        "2 2": plain_descent(range(8)),
        "2 4": plain_descent(range(8), range(8, 16)),
        "4 3": 0.0,
    }
    assert expected["1 1"] == pytest.approx(0.007)
    assert first == pytest.approx(expected, rel=1e-5)


def test_wrapped_models_and_batch_sizes(both):
    expected = {"replicated": True, "name": "2 to 3", "frozen": True, "sizes": [4, 8]}
    assert both("attributes") == [expected, expected]


def test_batches_go_round_robin_over_the_endless_sequence(both):
    first, second = both("shares")
    assert (first["epochs"], second["epochs"]) == ([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1])
    assert first["first"] == [0, 4, 8, 2, 6, 0]
    assert second["first"] == [2, 6, 0, 4, 8, 2]


def test_a_shuffled_epoch_has_each_record_once(both):
    first, second = both("shuffled")
    for epoch in (slice(0, 6), slice(6, 12)):
        records = [record for batch in first[epoch] + second[epoch] for record in batch]
        assert sorted(records) == list(range(24))
    assert first[:6] != first[6:]


@pytest.mark.full
def test_metrics_are_those_of_both(both):
    # Two interpreters, which hash strings differently: the order of a set of names must not count.
    first, second = both("metrics", start=new_interpreter)
    # Ranks train batches 0, 2 and 1, 3: reducers get the values back in the order of batches.
    window = {"rank": 0.5, "odd": 5.0, "never": None, "text": None, "order": [0, 2, 4, 6], "count": 4}
    assert first["windows"] == second["windows"] == [[window, 2]]
    # Five batches, three of them on rank 0: the mean over batches.
    values = {"mean": 4.0, "sum": 20.0, "max": 8.0, "min": 0.0, "order": [0, 2, 4, 6, 8]}
    assert first["validations"] == second["validations"] == [values]


def test_validation_on_the_chief_on_one_rank_and_on_none(both):
    first, second = both("validation")
    assert first == second
    assert first["whole"] == [{"records": 8, "rank": 0}]
    # Records 0 and 1 with the weight of one step: rank 1 had nothing to add.
    weight = plain_descent(range(4))
    assert first["one"] == [pytest.approx({"validation_loss": (1 - weight) ** 2 / 2}, rel=1e-4)]
    assert "empty" in first["none"]


def test_every_rank_hears_of_checkpoints_and_the_chief_writes_them(both):
    first, second = both("checkpoints")
    assert len(set(first["uuids"])) == 2
    assert first["uuids"] == second["uuids"]
    assert (first["saved"], second["saved"]) == (2, 0)


# Amid an aggregation, at the end of an epoch, and amid the second one; after any batch in the full tier.
@pytest.mark.parametrize("stops", [(1, 6, 9), pytest.param(range(1, 14), id="every", marks=pytest.mark.full)])
def test_resumed_at_every_batch(both, stops):
    """Shuffled, with dropout, aggregation 2, a stop that rank 1 alone asks for, and 0 or 2 workers."""
    for rank in both("resume", *stops):
        assert rank["differ"] == []
        assert len(set(rank["losses"])) == 14


def test_checkpoints_of_two_ranks_and_of_one(both):
    first, second = both("handed_on")
    assert first == second

    class Keep(pytorch.PyTorchCallback):
        def on_checkpoint_upload_end(self, uuid):
            Path("single").write_text(uuid)

    class Keeping(Random):
        def build_callbacks(self):
            return {"keep": Keep()}

    with pytorch.init(enable_tensorboard_logging=False) as context:
        trial = Keeping(context)
        pytorch.Trainer(trial, context).fit(max_length=Batch(5), latest_checkpoint=first["uuid"])
    assert [index for index, _ in trial.batches] == [4]
    assert trial.weights.tolist() != first["weights"]
    # Two ranks find all 5 batches trained.
    for rank in both("taken_over"):
        assert rank == {"weights": trial.weights.tolist(), "seen": []}

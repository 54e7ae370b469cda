"""Whose checkpoint one is, and storing what all ranks wrote, where another library has the loop."""

from types import SimpleNamespace

import pytest

from determined._training.counters import Counters
from determined._training.rank_checkpoints import RankCheckpoints
from tests.sdk.core.thread_ranks import run_ranks

TRIAL = 7


class Registry:
    """The checkpoints of a Core API, in memory."""

    def __init__(self, metadata):
        self.metadata = metadata
        self.uploads = []

    def get_metadata(self, uuid):
        return self.metadata[uuid]

    def upload(self, folder, metadata, *, shard, selector):
        self.uploads.append((folder, metadata, shard, selector))


def on_ranks(size, registry, act):
    def body(distributed):
        context = SimpleNamespace(checkpoint=registry, distributed=distributed)
        return act(RankCheckpoints(context, TRIAL))

    return run_ranks(size, body)


@pytest.mark.parametrize(("metadata", "own"), [({"trial_id": 7}, True), ({"trial_id": 8}, False), ({}, True)])
def test_all_ranks_agree_on_whose_checkpoint_it_is(metadata, own):
    assert on_ranks(2, Registry({"a": metadata}), lambda it: it.is_own("a")) == [own, own]


def test_no_rank_waits_when_the_chief_cannot_read_the_metadata():
    outcomes = on_ranks(2, Registry({}), lambda it: it.is_own("missing"))
    assert all(isinstance(outcome, KeyError) for outcome in outcomes)


def test_one_rank_of_a_node_stores_what_all_wrote(tmp_path):
    registry, folder = Registry({}), tmp_path / "new"
    on_ranks(2, registry, lambda it: it.store(folder, 3, framework="any", selector=str.isalpha))
    metadata = {"steps_completed": 3, "trial_id": TRIAL, "framework": "any"}
    assert sorted(registry.uploads, key=lambda upload: upload[0] is None) == [
        (folder, metadata, True, str.isalpha),
        (None, metadata, True, None),
    ]
    assert folder.is_dir()


def test_counters_go_on_in_the_same_trial_alone():
    fresh = Counters(trial_id=TRIAL)
    stored = {"trial_id": TRIAL, "batches_trained": 5, "unknown": 1}
    assert fresh.resumed(stored) == Counters(trial_id=TRIAL, batches_trained=5)
    assert fresh.resumed({**stored, "trial_id": 8}) is None

"""Going over a data set once on all slots, as a trial of one or of two ranks."""

import json

import pytest
import torch

from determined import core
from determined.pytorch import experimental
from tests.sdk.core.socket_ranks import run_ranks
from tests.sdk.pytorch.trial_process import TrialProcess

CONFIG = {"searcher": {"name": "single", "metric": "total", "max_length": {"batches": 100}}}


class Numbers(torch.utils.data.Dataset):
    def __init__(self, length):
        self._length = length

    def __len__(self):
        return self._length

    def __getitem__(self, index):
        return float(index)


@pytest.fixture
def process(monkeypatch, folder):
    return TrialProcess(monkeypatch, folder)


def processor(heard):
    """A class of processors that note what happens to them."""

    class Adds(experimental.TorchBatchProcessor):
        def __init__(self, context):
            self.context = context
            self.rank = context.distributed.rank
            self.total = context.wrap_reducer(sum, "total", for_training=False)

        def process_batch(self, batch, batch_idx):
            heard.append((self.rank, batch_idx, batch.tolist()))
            self.total.update(float(batch.sum()))
            with self.context.upload_path() as path:
                (path / f"{self.rank}-{batch_idx}").write_text(str(batch.tolist()))

        def on_checkpoint_start(self):
            heard.append((self.rank, "checkpoint"))

        def on_finish(self):
            heard.append((self.rank, "finished"))

    return Adds


def batches(heard):
    return [event for event in heard if len(event) == 3]


def stored(folder):
    """What the checkpoints say, in order."""
    files = sorted((folder / "storage").rglob(experimental.FILE), key=lambda file: file.stat().st_mtime_ns)
    return [json.loads(file.read_text()) for file in files]


def test_every_batch_once_and_the_metrics_of_all(process, folder):
    heard = []
    transport = process.become(lengths=(100,), config=CONFIG)
    experimental.torch_batch_process(processor(heard), Numbers(22), batch_size=2, checkpoint_interval=5)
    assert [batch for _, _, batch in batches(heard)] == [[2.0 * n, 2.0 * n + 1] for n in range(11)]
    assert [event for event in heard if len(event) == 2] == [(0, "checkpoint")] * 3 + [(0, "finished")]
    assert [steps for _, steps in process.checkpoints()] == [5, 10, 11]
    assert process.reported("validation") == [(11, {"total": 231.0})]
    assert ("completed", 0, 100, 231.0) in transport.log
    (output,) = {progress["default_output_uuid"] for progress in stored(folder)}
    assert len(list((folder / "storage" / output).iterdir())) == 11


def test_a_pause_and_the_rest(process, folder):
    heard = []
    process.become(lengths=(100,), config=CONFIG, preempt_after=1)
    experimental.torch_batch_process(processor(heard), Numbers(20), batch_size=2, checkpoint_interval=3)
    assert len(batches(heard)) == 6
    (latest, steps) = process.checkpoints()[-1]
    assert steps == 6
    assert (0, "finished") not in heard
    process.become(lengths=(100,), config=CONFIG, latest_checkpoint=latest)
    experimental.torch_batch_process(processor(heard), Numbers(20), batch_size=2, checkpoint_interval=3)
    assert [index for _, index, _ in batches(heard)] == list(range(10))
    assert [steps for _, steps in process.checkpoints()] == [9, 10]
    assert len({progress["default_output_uuid"] for progress in stored(folder)}) == 1


@pytest.mark.parametrize(("records", "counts"), [(60, (15, 15)), (50, (13, 12)), (2, (1, 0))])
def test_two_ranks_take_turns(process, monkeypatch, records, counts):
    heard = []
    process.become(lengths=(100,), config=CONFIG)
    by_rank = run_ranks(
        lambda dist: experimental.torch_batch_process(
            processor(heard), Numbers(records), batch_size=2, checkpoint_interval=5, distributed_context=dist
        )
    )
    assert by_rank == [None, None]
    for rank, count in enumerate(counts):
        mine = [(index, batch) for who, index, batch in batches(heard) if who == rank]
        assert [index for index, _ in mine] == list(range(count))
        assert [batch[0] for _, batch in mine] == [4.0 * n + 2 * rank for n in range(count)]
        assert heard.count((rank, "checkpoint")) == -(-counts[0] // 5)
    assert [metrics for _, metrics in process.reported("validation")] == [{"total": sum(range(records))}]


def test_at_most_so_many(process):
    heard = []
    process.become(lengths=(100,), config=CONFIG)
    options = {"batch_size": 4, "drop_last": True}
    experimental.torch_batch_process(processor(heard), Numbers(30), max_batches=3, dataloader_kwargs=options)
    assert [len(batch) for _, _, batch in batches(heard)] == [4, 4, 4]


def test_what_is_refused(process, monkeypatch):
    with pytest.raises(RuntimeError, match="on a cluster only"):
        experimental.torch_batch_process(processor([]), Numbers(4))
    process.become(config=CONFIG)
    for name in ("shuffle", "sampler", "batch_sampler"):
        with pytest.raises(ValueError, match=name):
            experimental.torch_batch_process(processor([]), Numbers(4), dataloader_kwargs={name: None})
    with pytest.raises(ValueError, match="batch_size once"):
        experimental.torch_batch_process(processor([]), Numbers(4), 2, dataloader_kwargs={"batch_size": 2})
    with pytest.raises(ValueError, match="at least 1"):
        experimental.torch_batch_process(processor([]), Numbers(4), checkpoint_interval=0)
    with pytest.raises(TypeError, match="length"):
        experimental.torch_batch_process(processor([]), iter([1]))


def test_the_context(tmp_path):
    with core._dummy_init(checkpoint_storage=str(tmp_path)) as core_context:
        context = experimental.TorchBatchProcessorContext(core_context, "results")
        model = context.prepare_model_for_inference(torch.nn.Dropout())
        assert not model.training
        assert context.device == experimental.get_default_device(core_context)
        assert context.to_device({"x": torch.zeros(1)})["x"].device == context.device
        with context.upload_path() as path:
            (path / "a").write_text("1")
        with context.upload_path() as path:
            (path / "b").write_text("2")
    assert sorted(file.name for file in (tmp_path / "results").iterdir()) == ["a", "b"]

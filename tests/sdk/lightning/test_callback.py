"""A small model under Lightning's Trainer, joined to a cluster in memory."""

import lightning.pytorch as pl
import pytest
import torch

import determined as det
from determined._training import pace
from determined.lightning import DetCallback

pytestmark = pytest.mark.filterwarnings("ignore")
SEARCHER = {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}}
BATCHES = 8


class Line(pl.LightningModule):
    """Learns a line; without chance."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layer(batch), 3 * batch + 1)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch), 3 * batch + 1))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


def loader():
    return torch.utils.data.DataLoader(torch.linspace(-1, 1, 2 * BATCHES).unsqueeze(1), batch_size=2)


class Run:
    """One process of a script, from `core.init` to its end."""

    def __init__(self, validates=True, callbacks=(), every_n_epochs=1, max_epochs=4, **options):
        with det.core.init() as core_context:
            self.callback = DetCallback(core_context, every_n_epochs)
            self.resumed = self.callback.ckpt_path
            trainer = pl.Trainer(
                max_epochs=self.callback.max_epochs or max_epochs,
                callbacks=[self.callback, *callbacks],
                log_every_n_steps=4,
                logger=False,
                accelerator="cpu",
                enable_progress_bar=False,
                enable_model_summary=False,
                **options,
            )
            model = Line()
            trainer.fit(model, loader(), loader() if validates else None, ckpt_path=self.resumed)
        self.steps = trainer.global_step
        self.weights = torch.cat([p.detach().flatten() for p in model.parameters()])


def become(process, **options):
    return process.become(**{"lengths": (2,), "config": {"searcher": SEARCHER}} | options)


def at(process, group):
    return [steps for steps, _ in process.reported(group)]


def completed(process):
    return [entry[2:] for entry in process.transport.log if entry[0] == "completed"]


def test_off_cluster_it_does_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Run().steps == 4 * BATCHES


def test_a_whole_run(process, caplog):
    become(process)
    with caplog.at_level("INFO"):
        run = Run()
    assert "weights_only" not in caplog.text, "Lightning remarks on each checkpoint that it was not told"
    assert (run.steps, run.resumed) == (2 * BATCHES, None)
    assert at(process, "training") == [4, 8, 12, 16]
    assert at(process, "validation") == [8, 16]
    assert [steps for _, steps in process.checkpoints()] == [8, 16]
    assert completed(process) == [(2, process.reported("validation")[-1][1]["val_loss"])]
    assert all(set(metrics) == {"val_loss"} for _, metrics in process.reported("validation"))
    assert all(set(metrics) == {"loss"} for _, metrics in process.reported("training"))
    assert process.transport.metadata[process.checkpoints()[0][0]]["trial_id"] == 7
    assert not list(process.folder.glob("determined-lightning/batches-*")), (
        "what is stored does not stay here"
    )


@pytest.mark.parametrize("lengths", [(8, 16), (3, 11), (16,)])
def test_lengths_in_batches(process, lengths):
    searcher = SEARCHER | {"max_length": {"batches": max(lengths)}}
    become(process, lengths=lengths, config={"searcher": searcher})
    run = Run(every_n_epochs=0)
    assert run.steps == max(lengths)
    assert [length for length, _ in completed(process)] == list(lengths)
    values = {steps: metrics["val_loss"] for steps, metrics in process.reported("validation")}
    assert completed(process) == [(length, values[length]) for length in lengths]
    assert [steps for _, steps in process.checkpoints()] == list(lengths)


def test_operations_in_epochs(process):
    become(process, lengths=(1, 3))
    assert Run().steps == 3 * BATCHES
    assert [length for length, _ in completed(process)] == [1, 3]


@pytest.mark.parametrize(
    ("unit", "lengths", "steps"), [("epochs", (2,), 16), ("epochs", (2, 3), 24), ("batches", (11, 16), 16)]
)
def test_a_process_that_ends_before_its_completion_leaves_a_checkpoint(process, unit, lengths, steps):
    """The next process states the completion, and trains no step of it again."""
    config = {"searcher": SEARCHER | {"max_length": {unit: max(lengths)}}}

    def complete(*_):
        raise RuntimeError("the host lost its power")

    become(process, lengths=lengths, config=config).complete = complete
    with pytest.raises(RuntimeError, match="power"):
        Run()
    uuid, stored = process.checkpoints()[-1]
    assert stored == (lengths[0] if unit == "batches" else lengths[0] * BATCHES)
    before = process.reported("validation")
    assert before[-1][0] == stored
    become(process, lengths=lengths, config=config, latest_checkpoint=uuid, steps=stored)
    assert Run().steps == steps
    assert [length for length, _ in completed(process)] == list(lengths)
    assert completed(process)[0] == (lengths[0], before[-1][1]["val_loss"])
    assert all(at > stored for at, _ in process.reported("validation"))


class PreemptAt(pl.Callback):
    """The cluster wants its slots back while this batch is trained."""

    def __init__(self, process, step):
        self.process, self.step = process, step

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if trainer.global_step + 1 == self.step:
            self.process.transport.preempt_after = 0


@pytest.mark.parametrize("stop", [3, 8, 13])
def test_paused_and_resumed_it_is_the_same(process, monkeypatch, stop):
    monkeypatch.setattr(pace, "EVERY_S", 0.0)
    become(process)
    whole = Run()
    expected = process.reported("validation")
    become(process, preempt_after=10**6)
    first = Run(callbacks=[PreemptAt(process, stop)])
    assert (first.steps, completed(process)) == (stop, [])
    before = process.reported("validation")
    uuid, steps = process.checkpoints()[-1]
    assert (steps, process.transport.kinds()[-1]) == (stop, "acknowledged")
    become(process, latest_checkpoint=uuid, steps=stop)
    second = Run()
    assert second.resumed.endswith(f"{uuid}/lightning.ckpt")
    assert second.steps == 2 * BATCHES
    assert [steps for steps, _ in before + process.reported("validation")] == [8, 16]
    assert [length for length, _ in completed(process)] == [2]
    if stop % BATCHES == 0:
        # In the middle of an epoch Lightning begins its data anew.
        assert torch.equal(second.weights, whole.weights)
        assert before + process.reported("validation") == expected


def test_the_checkpoint_of_another_trial_is_a_beginning(process):
    become(process)
    first = Run()
    uuid, _ = process.checkpoints()[-1]
    process.transport.metadata[uuid]["trial_id"] = 99
    become(process, latest_checkpoint=uuid)
    second = Run()
    assert (second.resumed, second.steps) == (None, 2 * BATCHES)
    assert at(process, "validation") == [8, 16]
    assert not torch.equal(second.weights, first.weights)


def test_without_a_validation_a_metric_of_the_training_counts(process):
    searcher = SEARCHER | {"metric": "loss"}
    become(process, config={"searcher": searcher})
    Run(validates=False)
    assert completed(process) == [(2, process.reported("training")[-1][1]["loss"])]


def test_a_metric_that_never_came_says_which_there_are(process):
    become(process, config={"searcher": SEARCHER | {"metric": "val_accuracy"}})
    with pytest.raises(KeyError, match=r"'val_accuracy' was never logged; there are: loss, val_loss"):
        Run()


def test_records_are_refused(process):
    become(process, config={"searcher": SEARCHER | {"max_length": {"records": 9}}})
    with pytest.raises(ValueError, match="in records does not fit Lightning"):
        Run()

"""Lightning's Trainer with the logger that reports from outside of a cluster."""

import lightning.pytorch as pl
import pytest
import torch

from determined.experimental import core_v2
from determined.lightning.experimental import DetLogger
from tests.sdk.lightning.test_callback import Line

pytestmark = pytest.mark.filterwarnings("ignore")


class Train:
    """Records reports, and refuses what a cluster would: a metric twice at the same step."""

    def __init__(self):
        self.reports, self._reported = [], set()

    def _report(self, group, steps, metrics):
        again = {(group, steps, name) for name in metrics} & self._reported
        assert not again, again
        self._reported |= {(group, steps, name) for name in metrics}
        self.reports.append((group, steps, metrics))

    def report_training_metrics(self, steps_completed, metrics):
        self._report("training", steps_completed, metrics)

    def report_validation_metrics(self, steps_completed, metrics):
        self._report("validation", steps_completed, metrics)


@pytest.fixture
def reports(monkeypatch):
    train, calls = Train(), []

    def init(**arguments):
        calls.append(arguments)
        monkeypatch.setattr(core_v2, "train", train, raising=False)

    monkeypatch.setattr(core_v2, "init", init)
    train.calls = calls
    return train


def test_what_lightning_logs_is_reported_by_its_kind(reports, tmp_path):
    defaults = core_v2.DefaultConfig(name="x")
    logger = DetLogger(defaults=defaults)
    data = torch.utils.data.DataLoader(torch.arange(8.0).reshape(8, 1) / 8, batch_size=1)
    trainer = pl.Trainer(
        max_epochs=2,
        logger=logger,
        log_every_n_steps=4,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(Line(), data, data)
    trainer.validate(trainer.lightning_module, data, verbose=False)
    assert reports.calls == [{"defaults": defaults, "unmanaged": None, "client": None}], "connected once"
    training = [(steps, set(metrics)) for group, steps, metrics in reports.reports if group == "training"]
    validation = [(steps, set(metrics)) for group, steps, metrics in reports.reports if group == "validation"]
    assert training == [
        (3, {"loss", "epoch"}),
        (7, {"loss", "epoch"}),
        (11, {"loss", "epoch"}),
        (15, {"loss", "epoch"}),
    ]
    assert validation == [
        (7, {"val_loss", "epoch"}),
        (15, {"val_loss", "epoch"}),
        (16, {"val_loss", "epoch"}),
    ]
    assert all(type(value) is float for _, _, metrics in reports.reports for value in metrics.values())


def test_a_metric_is_reported_once_at_a_step(reports):
    logger = DetLogger()
    logger.log_metrics({"loss": torch.tensor(0.5), "epoch": 0}, step=1)
    logger.log_metrics({"loss": 0.25, "epoch": 0}, step=1)
    logger.log_metrics({"loss_epoch": 0.25, "test_acc": 1.0, "epoch": 0}, step=1)
    logger.log_metrics({"epoch": 1}, step=2)
    assert reports.reports == [
        ("training", 1, {"loss": 0.5, "epoch": 0.0}),
        ("training", 1, {"loss_epoch": 0.25}),
        ("validation", 1, {"test_acc": 1.0, "epoch": 0.0}),
    ]

"""Trains a class named by the configuration, with the configuration's settings (Trainer spec, section 15)."""

from __future__ import annotations

from typing import Any

from determined._info import ClusterInfo
from determined._training.plan import Plan
from determined._training.units import Batch
from determined.pytorch._init import _opened
from determined.pytorch._trainer import Trainer
from determined.pytorch._trial import PyTorchTrial


def train(trial_class: type[PyTorchTrial], info: ClusterInfo) -> None:
    """Train as configured in the experiment, until the search ends."""
    config = info.trial._config
    optimizations = config.get("optimizations") or {}
    with _opened(
        info.trial.hparams,
        None,
        None,
        int(optimizations.get("aggregation_frequency", 1)),
        bool(optimizations.get("average_aggregated_gradients", True)),
        True,
    ) as context:
        trainer = Trainer(trial_class(context), context)
        profiling = config.get("profiling") or {}
        if profiling.get("enabled"):
            trainer.configure_profiler(
                sync_timings=profiling.get("sync_timings", True),
                enabled=True,
                begin_on_batch=profiling.get("begin_on_batch", 0),
                end_after_batch=profiling.get("end_after_batch"),
            )
        trainer._train(Plan.configured(info))


def try_locally(trial_class: type[PyTorchTrial], hparams: dict[str, Any], config: dict[str, Any]) -> None:
    """Train one batch, validate and store a checkpoint, without a cluster."""
    with _opened(hparams, config, None, 1, True, False) as context:
        Trainer(trial_class(context), context).fit(max_length=Batch(1), test_mode=True)

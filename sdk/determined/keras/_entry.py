"""Trains a class named by the configuration, with the configuration's settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from determined import core
from determined._info import ClusterInfo
from determined._training.plan import Plan
from determined._training.settings import Settings, seed_of
from determined._training.units import Batch
from determined.errors import InvalidExperimentException
from determined.keras import _ranks
from determined.keras._context import TFKerasTrialContext
from determined.keras._loop import KerasLoop
from determined.keras._trial import TFKerasTrial


def train(trial_class: type[TFKerasTrial], info: ClusterInfo) -> None:
    """Train as configured in the experiment, until the search ends."""
    trial, config = info.trial, info.trial._config
    with _ranks_of(info) as group, _core(group) as core_context:
        # NumPy takes 32 bits; seeds of configurations may be larger.
        keras.utils.set_random_seed(trial.trial_seed % 2**32)
        settings = Settings.of_trial(trial, group.size)
        context = TFKerasTrialContext(
            core_context,
            settings,
            aggregation_frequency=_aggregation(config),
            steps_completed=trial._steps_completed,
        )
        KerasLoop(trial_class(context), context, Plan.configured(info), local=False).run()


def try_locally(trial_class: type[TFKerasTrial], hparams: dict[str, Any], config: dict[str, Any]) -> None:
    """Train one batch, validate and store a checkpoint, without a cluster."""
    train_here(trial_class, hparams, config, Plan(max_length=Batch(1), test_mode=True, legacy=True))


def train_here(
    trial_class: type[TFKerasTrial],
    hparams: dict[str, Any],
    config: dict[str, Any],
    plan: Plan,
    group: core.DistributedContext | None = None,
) -> TFKerasTrial:
    """Train without a cluster, and return the trained trial."""
    group = group or core.DummyDistributedContext()
    with _core(group) as core_context:
        seed = seed_of(config)
        keras.utils.set_random_seed(seed)
        settings = Settings(hparams, config, group.size, trial_seed=seed)
        context = TFKerasTrialContext(core_context, settings, aggregation_frequency=_aggregation(config))
        trial = trial_class(context)
        KerasLoop(trial, context, plan, local=True).run()
    return trial


def _aggregation(config: dict[str, Any]) -> int:
    options = config.get("optimizations") or {}
    frequency = int(options.get("aggregation_frequency", 1))
    if frequency > 1 and not options.get("average_aggregated_gradients", True):
        raise InvalidExperimentException(
            "optimizations.average_aggregated_gradients: false does not fit Keras, whose optimizers average"
        )
    return frequency


@contextlib.contextmanager
def _ranks_of(info: ClusterInfo) -> Iterator[core.DistributedContext]:
    if len(info.slot_ids) <= 1 and len(info.container_addrs) <= 1:
        yield core.DummyDistributedContext()
        return
    _ranks.check_backend()
    from determined.pytorch._init import _group

    with _group(info, None) as group:
        yield group


def _core(group: core.DistributedContext) -> core.Context:
    return core.init(distributed=group, preempt_mode=core.PreemptMode.WorkersAskChief)

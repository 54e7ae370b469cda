"""Trains a class named by the configuration, with the configuration's settings."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from typing import Any

import torch

from det_contracts.expconf.sections import OPTIMIZATIONS
from determined import core
from determined._info import ClusterInfo
from determined._training.plan import Plan
from determined._training.settings import Settings, seed_of
from determined._training.units import Batch
from determined.errors import InvalidExperimentException
from determined.pytorch._init import _device, _seed
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined.pytorch.deepspeed._loop import DeepSpeedLoop
from determined.pytorch.deepspeed._trial import DeepSpeedTrial

logger = logging.getLogger("determined.pytorch.deepspeed")
_OURS = {"average_training_metrics", "mixed_precision", "aggregation_frequency"}
_DEFAULTS = {name: field.default for name, field in OPTIMIZATIONS.fields.items()}


def train(trial_class: type[DeepSpeedTrial], info: ClusterInfo) -> None:
    """Train as configured in the experiment, until the search ends."""
    trial, config = info.trial, info.trial._config
    check_optimizations(config.get("optimizations") or {})
    several = len(info.slot_ids) > 1 or len(info.container_addrs) > 1
    with _ranks(several) as group, _core(group) as core_context:
        _seed(trial.trial_seed)
        settings = Settings.of_trial(trial, group.size)
        context = DeepSpeedTrialContext(
            core_context, settings, _device(group), steps_completed=trial._steps_completed
        )
        DeepSpeedLoop(trial_class(context), context, Plan.configured(info), local=False).run()


def try_locally(trial_class: type[DeepSpeedTrial], hparams: dict[str, Any], config: dict[str, Any]) -> None:
    """Train one batch, validate and store a checkpoint, without a cluster."""
    check_optimizations(config.get("optimizations") or {})
    train_here(trial_class, hparams, config, Plan(max_length=Batch(1), test_mode=True, legacy=True))


def train_here(
    trial_class: type[DeepSpeedTrial],
    hparams: dict[str, Any],
    config: dict[str, Any],
    plan: Plan,
) -> DeepSpeedTrial:
    """Train without a cluster, on the ranks in torch's environment variables. Returns the trained trial."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    with _ranks(several) as group, _core(group) as core_context:
        seed = seed_of(config)
        _seed(seed)
        settings = Settings(hparams, config, group.size, trial_seed=seed)
        context = DeepSpeedTrialContext(
            core_context, settings, _device(group), enable_tensorboard_logging=False
        )
        trial = trial_class(context)
        DeepSpeedLoop(trial, context, plan, local=True).run()
    return trial


def check_optimizations(options: dict[str, Any]) -> None:
    """Reject options that DeepSpeed's own configuration sets; warn about options without effect.

    Raises:
        InvalidExperimentException: `mixed_precision` or `aggregation_frequency` is set.
    """
    if options.get("mixed_precision", "O0") != "O0":
        raise InvalidExperimentException(
            "optimizations.mixed_precision is DeepSpeed's to decide: set fp16 or bf16 in its configuration"
        )
    if int(options.get("aggregation_frequency", 1)) > 1:
        raise InvalidExperimentException(
            "optimizations.aggregation_frequency is DeepSpeed's to decide: set gradient_accumulation_steps "
            "in its configuration"
        )
    for name, value in options.items():
        if name not in _OURS and value != _DEFAULTS.get(name, value):
            logger.warning("optimizations.%s has no effect on a DeepSpeedTrial", name)


@contextlib.contextmanager
def _ranks(several: bool) -> Iterator[core.DistributedContext]:
    """Yield all ranks, connected through DeepSpeed unless the script does that itself."""
    launched = bool(os.environ.get("USE_DEEPSPEED") or os.environ.get("USE_TORCH_DISTRIBUTED"))
    if several and not launched:
        raise ValueError(
            "a trial with several slots must be started by a launcher: begin the entrypoint with "
            "python3 -m determined.launch.deepspeed"
        )
    if not launched:
        _be_alone()
    ours = not torch.distributed.is_initialized() and not os.environ.get("DET_MANUAL_INIT_DISTRIBUTED")
    if ours:
        _join()
    try:
        yield _group(launched)
    finally:
        if ours and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _group(launched: bool) -> core.DistributedContext:
    if not launched:
        return core.DummyDistributedContext()
    if os.environ.get("USE_DEEPSPEED"):
        return core.DistributedContext.from_deepspeed()
    return core.DistributedContext.from_torch_distributed()


def _be_alone() -> None:
    """Set up a process group of one rank, which DeepSpeed requires."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    for name, value in {**alone, "MASTER_PORT": str(port)}.items():
        # A script that is itself started by a launcher has set some of them.
        os.environ.setdefault(name, value)


def _join() -> None:
    import deepspeed

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed(
        # Without the search for MPI, which needs mpi4py and is of no use to ranks that know their places.
        dist_backend="nccl" if torch.cuda.is_available() else "gloo",
        auto_mpi_discovery=False,
    )


def _core(group: core.DistributedContext) -> core.Context:
    return core.init(
        distributed=group,
        preempt_mode=core.PreemptMode.WorkersAskChief,
        tensorboard_mode=core.TensorboardMode.MANUAL,
    )

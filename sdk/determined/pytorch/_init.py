"""Creates the context for training with PyTorch (Trainer spec, section 10)."""

from __future__ import annotations

import contextlib
import datetime
import os
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from determined import _arguments, core
from determined._info import ClusterInfo, get_cluster_info
from determined._training.settings import Settings
from determined.core._distributed import check_ranks
from determined.core._storage_choice import user_data_directory
from determined.errors import InvalidExperimentException
from determined.pytorch._context import PyTorchTrialContext


@contextlib.contextmanager
def init(
    *,
    hparams: dict[str, Any] | None = None,
    exp_conf: dict[str, Any] | None = None,
    distributed: core.DistributedContext | None = None,
    aggregation_frequency: int = 1,
    enable_tensorboard_logging: bool = True,
) -> Iterator[PyTorchTrialContext]:
    """Open the context that a `PyTorchTrial` and its `Trainer` are constructed with.

    Do everything inside the `with` block, including `fit()`. The same script runs on a cluster and off it.

    Args:
        hparams: Hyperparameters by name. Default on a cluster: those of the trial.
        exp_conf: The experiment configuration for an off-cluster run. On a cluster it is the experiment's.
        distributed: The ranks of an off-cluster run with several processes. On a cluster the launcher sets
            it.
        aggregation_frequency: Number of batches whose gradients are accumulated for one optimizer step.
        enable_tensorboard_logging: Whether reported metrics are also written as TensorBoard events.

    Returns:
        A context manager that yields the `PyTorchTrialContext`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If the trial has several slots and its entrypoint does not start with a launcher, or
            `aggregation_frequency` is below 1.
        AssertionError: Off cluster, if `distributed` has several ranks and torch distributed is not in use.
        InvalidExperimentException: If the script was started by Horovod, or `global_batch_size` is not an
            integer or is smaller than the number of slots.

    Example:
        ```python
        import determined as det
        from determined import pytorch

        info = det.get_cluster_info()                 # None off cluster
        with pytorch.init(hparams={"lr": 0.1, "global_batch_size": 64}) as context:
            trainer = pytorch.Trainer(MnistTrial(context), context)
            trainer.fit(
                max_length=pytorch.Epoch(3),          # off cluster; on a cluster the search decides
                checkpoint_period=pytorch.Epoch(1),
                validation_period=pytorch.Batch(100),
                latest_checkpoint=info.latest_checkpoint if info else None,
            )
        ```
    """
    _check(distributed, aggregation_frequency)
    with _opened(
        hparams, exp_conf, distributed, aggregation_frequency, True, enable_tensorboard_logging
    ) as context:
        yield context


@contextlib.contextmanager
def _opened(
    hparams: dict[str, Any] | None,
    exp_conf: dict[str, Any] | None,
    distributed: core.DistributedContext | None,
    aggregation: int,
    average: bool,
    events: bool,
) -> Iterator[PyTorchTrialContext]:
    info = get_cluster_info()
    # In a notebook or command no search directs the training: it trains as off cluster.
    if info is not None and info.task_type != "TRIAL":
        info = None
    with _group(info, distributed) as group, _core(group) as core_context:
        if info is not None:
            _seed(info.trial.trial_seed)
        context = PyTorchTrialContext(
            core_context,
            _settings(info, hparams, exp_conf, group.size),
            _device(group),
            aggregation_frequency=aggregation,
            average_aggregated_gradients=average,
            steps_completed=info.trial._steps_completed if info is not None else 0,
            replicated=group.size > 1,
            enable_tensorboard_logging=events,
        )
        context._on_cluster = info is not None
        if info is None:
            context._events.path = _local_events()
        yield context


def _check(distributed: Any, aggregation_frequency: Any) -> None:
    if distributed is not None:
        check_ranks("distributed", distributed)
    _arguments.integer("aggregation_frequency", aggregation_frequency, at_least=1)


def _local_events() -> pathlib.Path:
    """Return an off-cluster directory for this process's events, separate from the code and other runs."""
    run = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    return user_data_directory() / "tensorboard" / run


def _core(group: core.DistributedContext) -> core.Context:
    return core.init(
        distributed=group,
        preempt_mode=core.PreemptMode.WorkersAskChief,
        tensorboard_mode=core.TensorboardMode.MANUAL,
    )


def _settings(
    info: ClusterInfo | None, hparams: dict[str, Any] | None, exp_conf: dict[str, Any] | None, slots: int
) -> Settings:
    if info is None:
        return Settings(hparams, exp_conf, slots)
    return Settings.of_trial(info.trial, slots, hparams)


@contextlib.contextmanager
def _group(
    info: ClusterInfo | None, distributed: core.DistributedContext | None
) -> Iterator[core.DistributedContext]:
    """Yield all ranks: those started by the launcher, or those a local script created itself."""
    if info is None:
        group = distributed or core.DummyDistributedContext()
        if group.size > 1 and not os.environ.get("USE_TORCH_DISTRIBUTED"):
            raise AssertionError(
                f"{group.size} ranks need torch distributed: call torch.distributed.init_process_group() and "
                "set USE_TORCH_DISTRIBUTED=true"
            )
        yield group
        return
    if os.environ.get("USE_HOROVOD"):
        raise InvalidExperimentException(
            "determined.pytorch trains with torch distributed, not with Horovod: use "
            "python3 -m determined.launch.torch_distributed as the entrypoint's launcher"
        )
    if not os.environ.get("USE_TORCH_DISTRIBUTED"):
        if len(info.slot_ids) > 1 or len(info.container_addrs) > 1:
            raise ValueError(
                "a trial with several slots must be started by a launcher: begin the entrypoint with "
                "python3 -m determined.launch.torch_distributed"
            )
        yield core.DummyDistributedContext()
        return
    # A script that initialized it itself, with options of its own, also ends it.
    ours = not torch.distributed.is_initialized()
    if ours:
        _bind_device()
        torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield core.DistributedContext.from_torch_distributed()
    finally:
        if ours:
            torch.distributed.destroy_process_group()


def _bind_device() -> None:
    if torch.cuda.is_available():
        # Before NCCL starts, which would put every rank of this node on the first GPU.
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def _device(group: core.DistributedContext) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", group.local_rank)
    torch.cuda.set_device(device)
    return device


def _seed(seed: int) -> None:
    random.seed(seed)
    # NumPy takes 32 bits; seeds of configurations may be larger.
    np.random.seed(seed % 2**32)
    torch.random.manual_seed(seed)

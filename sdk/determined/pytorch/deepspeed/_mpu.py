"""Model-parallel units: which ranks hold the same part of a model, load data, and report."""

from __future__ import annotations

import dataclasses
from typing import Any

from determined import core


@dataclasses.dataclass
class ModelParallelUnit:
    """This rank's place when a model is divided over several ranks.

    Attributes:
        data_parallel_rank: Index among the ranks that train the same part of the model on other data, from 0.
        data_parallel_world_size: Number of these ranks.
        should_report_metrics: Whether this rank's metrics are used.
        should_build_data_loader: Whether this rank loads data. On other ranks the iterator passed to the
            trial is None.

    Example:
        ```python
        # Two ranks share a model: both load data, the first of them reports.
        rank, size = context.distributed.rank, context.distributed.size
        context.set_mpu(ModelParallelUnit(rank // 2, size // 2, rank % 2 == 0, True))
        ```
    """

    data_parallel_rank: int
    data_parallel_world_size: int
    should_report_metrics: bool
    should_build_data_loader: bool


def make_data_parallel_mpu(dist_context: core.DistributedContext) -> ModelParallelUnit:
    """Return the unit of plain data parallelism: every rank holds the whole model, loads data and reports.

    Args:
        dist_context: The ranks of the trial.

    Example:
        ```python
        context.set_mpu(make_data_parallel_mpu(context.distributed))
        ```
    """
    return ModelParallelUnit(dist_context.rank, dist_context.size, True, True)


def make_deepspeed_mpu(topology: Any) -> ModelParallelUnit:
    """Return the model-parallel unit of a pipeline engine.

    Args:
        topology: The engine's grid, `engine.mpu`.

    Returns:
        A unit in which the first and last stages load data and the last one reports.

    Example:
        ```python
        engine = context.wrap_model_engine(engine)
        context.set_mpu(make_deepspeed_mpu(engine.mpu))
        ```
    """
    stage, first_slice = topology.get_pipe_parallel_rank(), topology.get_slice_parallel_rank() == 0
    last = topology.get_pipe_parallel_world_size() - 1
    return ModelParallelUnit(
        topology.get_data_parallel_rank(),
        topology.get_data_parallel_world_size(),
        should_report_metrics=stage == last and first_slice,
        # The first stage needs the inputs, the last one the labels.
        should_build_data_loader=stage in (0, last) and first_slice,
    )

"""Event files of scripts that write them themselves, by PyTorch's writer."""

from __future__ import annotations

from typing import Any

from torch.utils.tensorboard import SummaryWriter

from determined._info import get_cluster_info
from determined.core import _tensorboard
from determined.tensorboard.metric_writers.callback import MetricWriter


class TorchWriter(MetricWriter):
    """`writer` is a SummaryWriter into the folder from which the platform stores event files."""

    def __init__(self) -> None:
        info = get_cluster_info()
        path = _tensorboard.tensorboard_path(info.allocation_id if info is not None else "local")
        self.writer: Any = SummaryWriter(log_dir=str(path))

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        """Write a number of a step."""
        self.writer.add_scalar(name, value, step)

    def reset(self) -> None:
        """Have everything in the file; the next number begins a new one."""
        self.writer.close()

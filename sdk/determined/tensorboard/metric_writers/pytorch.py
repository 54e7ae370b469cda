"""Event file writer for scripts, based on PyTorch's."""

from __future__ import annotations

from typing import Any

from torch.utils.tensorboard import SummaryWriter

from determined._info import get_cluster_info
from determined.core import _tensorboard
from determined.tensorboard.metric_writers.callback import MetricWriter


class TorchWriter(MetricWriter):
    """`writer` is a SummaryWriter for the directory whose event files the platform stores."""

    def __init__(self) -> None:
        info = get_cluster_info()
        path = _tensorboard.tensorboard_path(info.allocation_id if info is not None else "local")
        self.writer: Any = SummaryWriter(log_dir=str(path))

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        """Write a number at a step."""
        self.writer.add_scalar(name, value, step)

    def reset(self) -> None:
        """Flush everything to the file. The next write starts a new file."""
        self.writer.close()

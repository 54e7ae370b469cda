"""Writes metrics as TensorBoard events if TensorBoard is installed (Trainer spec, section 16)."""

from __future__ import annotations

import logging
import numbers
import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

logger = logging.getLogger("determined.pytorch")


class EventFiles:
    """The event files of one process."""

    def __init__(self, path: pathlib.Path, enabled: bool) -> None:
        self.path = path
        self.enabled = enabled
        self._writer: Any = None
        self._missing = False

    def writer(self) -> SummaryWriter:
        """Return the single writer, created on first use. Raises ImportError without TensorBoard."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(log_dir=str(self.path))
        writer: SummaryWriter = self._writer
        return writer

    def close(self) -> None:
        """Flush everything to the files. The next write starts a new file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def write_training(self, steps: int, averages: dict[str, Any], batches: list[dict[str, Any]]) -> None:
        """Write each metric at each batch, and metrics that only the window has at its end."""
        writer = self._wanted()
        if writer is None:
            return
        for place, metrics in enumerate(batches):
            for name, value in metrics.items():
                _write(writer, f"Determined/{name}", value, steps - len(batches) + place)
        # What every batch has is written batch by batch; its average would be one point too many.
        whole = batches[0] if batches else {}
        for name, value in averages.items():
            if name not in whole:
                _write(writer, f"Determined/{name}", value, steps)

    def write_validation(self, steps: int, metrics: dict[str, Any]) -> None:
        """Write each metric under a name that starts with `val`."""
        writer = self._wanted()
        if writer is None:
            return
        for name, value in metrics.items():
            tag = name if name.startswith("val") else f"val_{name}"
            _write(writer, f"Determined/{tag}", value, steps)

    def _wanted(self) -> Any:
        if not self.enabled or self._missing:
            return None
        try:
            return self.writer()
        except ImportError as error:
            # One warning is enough: this is called for each report.
            self._missing = True
            logger.warning(
                "no TensorBoard events are written (%s). Metrics are reported all the same; "
                "to use `det tensorboard`, pip install tensorboard",
                error,
            )
            return None


class TensorBoardLogging:
    """What contexts of trials offer for TensorBoard."""

    _events: EventFiles

    def get_tensorboard_path(self) -> pathlib.Path:
        """Return the directory for this process's TensorBoard event files.

        Example:
            ```python
            writer = SummaryWriter(log_dir=str(self.context.get_tensorboard_path()))
            ```
        """
        return self._events.path

    def get_tensorboard_writer(self) -> SummaryWriter:
        """Return the `SummaryWriter` of this process. Every call returns the same one.

        Raises:
            ImportError: If TensorBoard is not installed.

        Example:
            ```python
            context.get_tensorboard_writer().add_image("input", images[0], context.current_train_batch())
            ```
        """
        return self._events.writer()

    def set_enable_tensorboard_logging(self, enable_tensorboard_logging: bool) -> None:
        """Choose whether reported metrics are written as TensorBoard events and event files are stored.

        Args:
            enable_tensorboard_logging: False to do neither.

        Example:
            ```python
            self.context.set_enable_tensorboard_logging(False)
            ```
        """
        self._events.enabled = enable_tensorboard_logging

    def get_enable_tensorboard_logging(self) -> bool:
        """Return whether reported metrics are written as TensorBoard events and event files are stored.

        Example:
            ```python
            if self.context.get_enable_tensorboard_logging():
                self.writer.add_image("sample", images[0])
            ```
        """
        return self._events.enabled


def _write(writer: Any, tag: str, value: Any, step: int) -> None:
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, numbers.Number) and not isinstance(value, complex):
        writer.add_scalar(tag, value, step)

"""TensorBoard files of trials (core API spec, section 11)."""

from determined import _absent
from determined.tensorboard.metric_writers.callback import BatchMetricWriter, MetricWriter

__all__ = ["BatchMetricWriter", "MetricWriter", "get_metric_writer"]

_absent.explain_in(__name__)


def get_metric_writer() -> BatchMetricWriter:
    """Return a writer of whole reports, based on PyTorch's. ImportError without torch or TensorBoard.

    Example:
        ```python
        writer = det.tensorboard.get_metric_writer()
        writer.on_validation_step_end(100, {"accuracy": 0.91})
        ```
    """
    from determined.tensorboard.metric_writers.pytorch import TorchWriter

    return BatchMetricWriter(TorchWriter())

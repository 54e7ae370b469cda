"""TensorBoard files of trials (core API spec, section 11)."""

from determined import _absent
from determined.tensorboard.metric_writers.callback import BatchMetricWriter, MetricWriter

__all__ = ["BatchMetricWriter", "MetricWriter", "get_metric_writer"]

_absent.explain_in(__name__)


def get_metric_writer() -> BatchMetricWriter:
    """Return a writer of whole reports, based on PyTorch's. ImportError without torch or TensorBoard."""
    from determined.tensorboard.metric_writers.pytorch import TorchWriter

    return BatchMetricWriter(TorchWriter())

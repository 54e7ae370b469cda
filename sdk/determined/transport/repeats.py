"""Merges two reports of a group at the same steps, and detects repeated metrics."""

from __future__ import annotations

from determined.transport.protocol import MetricReport


def joined(before: MetricReport, after: MetricReport) -> MetricReport:
    """Return all metrics of two reports at the same steps. An identical report is not an error.

    Raises RuntimeError for a metric that both contain, because the first value cannot be revoked.
    """
    # Compared by repr, because NaN is not equal to itself.
    earlier = {name: repr(value) for name, value in before.metrics.items()}
    again = all(earlier.get(name) == repr(value) for name, value in after.metrics.items())
    if again and after.batch_metrics in (None, before.batch_metrics):
        return before
    twice = sorted(before.metrics.keys() & after.metrics.keys())
    where = f"{after.group} metrics at {after.steps_completed} steps"
    if twice:
        raise RuntimeError(
            f"overwriting existing metric keys is not supported, conflicting key: {twice[0]}. "
            f"The {where} were reported before; report each metric once for each number of steps"
        )
    if before.batch_metrics is not None and after.batch_metrics is not None:
        raise RuntimeError(f"overwriting existing batch metrics is not supported: those of {where}")
    metrics = {**before.metrics, **after.metrics}
    batches = before.batch_metrics if after.batch_metrics is None else after.batch_metrics
    return MetricReport(before.group, before.steps_completed, metrics, batches)

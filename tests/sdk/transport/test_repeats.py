"""Two reports of a group at the same steps."""

import pytest

from determined.transport.protocol import MetricReport
from determined.transport.repeats import joined


def report(metrics, batches=None):
    return MetricReport("training", 5, metrics, batches)


def test_other_metrics_join():
    both = joined(report({"loss": 1.0}), report({"accuracy": 0.5}, [{"loss": 2.0}]))
    assert (both.metrics, both.batch_metrics) == ({"loss": 1.0, "accuracy": 0.5}, [{"loss": 2.0}])


@pytest.mark.parametrize("metrics", [{"loss": 1.0}, {"loss": float("nan"), "x": [1, "a"]}])
def test_the_same_once_more_is_no_error(metrics):
    before = report(metrics | {"more": 1.0}, [{"loss": 1.0}])
    again = {name: float("nan") if value != value else value for name, value in metrics.items()}
    assert joined(before, report(again)) is before


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            report({"loss": 2.0}),
            r"key: loss. The training metrics at 5 steps were reported before",
        ),
        (report({"loss": 1.0, "x": 2.0}), "conflicting key: loss"),
        (report({"x": 2.0}, [{}]), "existing batch metrics"),
    ],
)
def test_a_repeated_report_raises(after, message):
    with pytest.raises(RuntimeError, match=message):
        joined(report({"loss": 1.0}, [{"a": 1}]), after)

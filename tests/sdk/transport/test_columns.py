"""Reports in columns hold what the reports held, in their order."""

from hypothesis import given
from hypothesis import strategies as st

from determined.transport.columns import to_series
from determined.transport.protocol import MetricReport

values = st.dictionaries(st.sampled_from("abc"), st.floats(allow_nan=False) | st.text(max_size=3))
batches = st.none() | st.lists(values, max_size=2)
reports = st.lists(
    st.tuples(
        st.floats(0, 9), st.builds(MetricReport, st.sampled_from("tv"), st.integers(0, 9), values, batches)
    )
)


@given(reports)
def test_columns_are_taken_apart_to_the_same_reports(timed):
    timed_reports = []
    for series in to_series(timed):
        assert series.steps
        assert len(series.batch_metrics) in (0, len(series.steps))
        for place, (steps, at) in enumerate(zip(series.steps, series.at, strict=True)):
            metrics = {name: column[place] for name, column in series.columns.items()}
            batched = series.batch_metrics[place] if series.batch_metrics else None
            timed_reports.append((at, MetricReport(series.group, steps, metrics, batched)))
    assert timed_reports == timed


def test_neighbours_of_one_shape_travel_together():
    made = [(1.0, MetricReport("training", step, {"a": 1.0, "b": 2.0})) for step in range(5)]
    other = (1.0, MetricReport("training", 5, {"b": 1.0, "a": 2.0}))
    assert [len(series.steps) for series in to_series([*made, other, *made])] == [5, 1, 5]

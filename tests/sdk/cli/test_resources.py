"""`det resources`."""

import pytest

RAW = "/resources/allocation/raw"
SUMMED = "/resources/allocation/aggregated"


@pytest.fixture
def used(master):
    master.answer("GET", RAW, "kind,seconds\ntraining,3.5\n")
    master.answer("GET", f"/api/v1{RAW}", {"resourceEntries": [{"kind": "training"}]})
    master.answer("GET", SUMMED, "aggregation_type\ntotal\n")
    return master


def test_runs_come_as_a_table_or_as_json(used, det):
    words = ("resources", "raw", "2023-08-01T00:00:00Z", "2023-09-01T00:00:00+02:00")
    assert "training" in det(*words).out
    (call,) = used.calls_to("GET", RAW)
    assert call.query == {
        "timestamp_after": ["2023-08-01T00:00:00Z"],
        "timestamp_before": ["2023-09-01T00:00:00+02:00"],
    }
    assert '"kind": "training"' in det(*words, "--json").out


@pytest.mark.parametrize(("words", "period"), [((), "DAILY"), (("--monthly",), "MONTHLY")])
def test_sums_are_of_days_or_months(used, det, words, period):
    assert "total" in det("res", "agg", "2023-08-01", "2023-08-02", *words).out
    (call,) = used.calls_to("GET", SUMMED)
    assert call.query["period"] == [f"RESOURCE_ALLOCATION_AGGREGATION_PERIOD_{period}"]

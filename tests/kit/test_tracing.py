"""Traces: when there are any, and which span an event belongs to."""

import subprocess
import sys

import msgspec
import pytest

from det_contracts.envelope import Recorded
from services.kit import trace_context, tracing
from services.kit.log import Stored
from services.kit.settings import BadSettings


class Asked(msgspec.Struct, frozen=True):
    allocation_id: str


class Said(msgspec.Struct, frozen=True):
    trial_id: int


def trail_of(*entries):
    made = trace_context.EventSpans()
    messages = [Stored("s", at, b"", span) for at, (_, _, span) in enumerate(entries, 1)]
    events = [Recorded(at, event, id, "", 0.0) for at, (id, event, _) in enumerate(entries, 1)]
    made.record_events(messages, events)
    return made


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"},
    ],
)
def test_without_an_exporter_there_is_nothing(environment):
    assert tracing.configure("searcher", environment) is None


def test_a_missing_exporter_is_reported():
    with pytest.raises(BadSettings, match="OTEL_TRACES_EXPORTER='zipkin'"):
        tracing.configure("searcher", {"OTEL_TRACES_EXPORTER": "zipkin"})


def test_the_first_answer_belongs_to_what_its_run_came_from_and_others_to_their_causes():
    entries = ("e-1", Asked("a-1"), "one"), ("e-2", Asked("a-2"), "two"), ("e-3", Said(7), "three")
    trail = trail_of(*entries)
    assert trail.cause_of(Asked("a-1"), "e-2") == "one"
    assert trail.cause_of(Asked("a-1"), "e-3") == "three"
    assert trail.cause_of(Asked("a-3"), "e-2") == "two"
    assert trail.cause_of(Said(7), "e-3") == "three"
    assert trail.cause_of(Said(7), "unknown") == ""


def test_events_without_a_trace_leave_none():
    trail = trail_of(("e-1", Asked("a-1"), ""), ("e-2", Said(7), ""))
    assert not trail._spans


def test_the_oldest_spans_are_evicted(monkeypatch):
    monkeypatch.setattr(trace_context, "MAX_SPANS", 2)
    trail = trail_of(*((f"e-{n}", Said(n), str(n)) for n in range(5)))
    assert [trail.cause_of(Said(0), f"e-{n}") for n in range(5)] == ["", "", "", "3", "4"]


def test_no_exporter_is_loaded_without_need():
    # FastAPI loads the API of the library, which does nothing by itself, where that is installed.

    code = (
        "import sys, services.gateway.app, worker.app\n"
        "from services.kit import tracing\n"
        "assert tracing.configure('x', {}) is None\n"
        "assert not {'opentelemetry.sdk', 'opentelemetry.exporter', 'services.kit.spans'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr

"""One trace from a submission to the first line of its script, as a collector gets it."""

import pytest

from tests.fixtures.local_cluster import wait_for

collecting = pytest.importorskip("tests.fixtures.collector", reason="opentelemetry is not installed")
pytestmark = pytest.mark.timeout(900)
CONFIG = """
name: traced
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
max_restarts: 0
"""
CHAIN = [
    ("gateway", "POST /api/v1/experiments"),
    ("searcher", "searcher create_experiment"),
    ("searcher", "searcher.trial.run_requested"),
    ("scheduler", "scheduler.allocation.assigned"),
    ("worker", "worker start"),
    ("worker", "worker first line"),
]


@pytest.fixture
def collector():
    with collecting.Collector().running() as running:
        yield running


def ancestors(collector, span):
    """A span and what it is within, outermost first, as far as it is known; the services with their names."""
    spans = {other.span_id: (service, other) for service, other in list(collector.spans)}
    chain = []
    while span is not None and span.span_id in spans:
        service, ancestor = spans[span.span_id]
        assert ancestor.trace_id == span.trace_id
        chain.append((service, ancestor))
        _, span = spans.get(ancestor.parent_span_id, (None, None))
    return chain[::-1]


@pytest.mark.full
def test_one_trace_from_the_request_to_the_first_line(local_cluster, collector, tmp_path):
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    cluster = local_cluster(settings=variables)
    (tmp_path / "train.py").write_text("print('the first line', flush=True)\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", tmp_path)
    cluster.wait_for_end(id)
    wait_for(lambda: collector.named("worker first line"), 60, "the last span")
    (last,) = collector.named("worker first line")
    # Each program sends its own in its own time.
    wait_for(lambda: ancestors(collector, last)[0][1].name == CHAIN[0][1], 60, "the first span")
    assert len(collector.named("POST /api/v1/experiments")) == 1
    chain = ancestors(collector, last)
    names = [(service, span.name) for service, span in chain]
    assert [name for name in names if name in CHAIN] == CHAIN, names
    begins = [span.start_time_unix_nano for _, span in chain]
    assert begins == sorted(begins)
    run = {attribute.key: attribute.value.string_value for attribute in last.attributes}
    assert run["allocation"] == cluster.get("trials/1")["trial"]["taskIds"][0] + ".1"
    # What only reads is not followed.
    assert not [span.name for _, span in collector.spans if span.name.startswith("GET")]

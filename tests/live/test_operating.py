"""What Prometheus reads of a cluster that works, and what the dashboard and the alerts ask of it."""

import importlib.util
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
import requests
import yaml

from tests.fixtures.local_cluster import wait_for

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.timeout(900)
PLAN: dict[str, str] = {}
"""Own, since its numbers are those of all that happened on it."""
SCRIPT = """
import determined as det
print("begun", flush=True)
with det.core.init() as core:
    for op in core.searcher.operations():
        for step in range(1, op.length + 1):
            core.train.report_training_metrics(step, {"loss": 1.0, "rate": 0.1})
        with core.checkpoint.store_path({"steps_completed": op.length}) as (path, uuid):
            (path / "weights").write_bytes(b"w" * 1000)
        core.train.report_validation_metrics(op.length, {"loss": 0.5})
        op.report_completed(0.5)
"""
CONFIG = """
name: observed
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_length: 5, max_trials: 3}
max_restarts: 0
"""
BUILT_IN = {"up"}
"""Prometheus makes it by itself."""


@pytest.fixture(scope="module")
def cluster(module_cluster, tmp_path_factory):
    """A cluster that has done something of every kind."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "config.yaml").write_text(CONFIG)
    module_cluster.wait_for_end(module_cluster.create("config.yaml", folder))
    module_cluster.get("experiments")
    return module_cluster


@pytest.fixture(scope="module")
def exported(cluster):
    """Metric -> its samples, each (labels, value), of all programs together."""
    # The first heartbeat comes some time after the worker's first work.
    wait_for(lambda: all_told(cluster)["steadfast_heartbeat_age_seconds"], 60, "the age of a heartbeat")
    return all_told(cluster)


def all_told(cluster):
    targets = json.loads((cluster.home.path / "prometheus-targets.json").read_text())
    metrics = defaultdict(list)
    for target in targets:
        for name, samples in read(f"http://{target['targets'][0]}/metrics").items():
            metrics[name] += samples
    return metrics


def read(url, **headers):
    answer = requests.get(url, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    metrics = {}
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            metrics |= {name + suffix: [] for suffix in suffixes}
        elif match := re.fullmatch(r"(\w+)(?:{(.*)})? (\S+)(?: \d+)?", line):
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            metrics.setdefault(match[1], []).append((labels, float(match[3])))
    return metrics


def value(exported, name, **labels):
    """The sum of the samples with these labels."""
    chosen = [v for sample_labels, v in exported[name] if labels.items() <= sample_labels.items()]
    assert chosen, f"{name} {labels} is not exported: {exported[name]}"
    return sum(chosen)


def queries():
    board = json.loads((DEPLOY / "grafana" / "dashboards" / "steadfast.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def test_the_numbers_are_those_of_what_happened(exported):
    assert value(exported, "steadfast_ready") == 7
    assert value(exported, "steadfast_leads") == 7
    assert value(exported, "steadfast_broker_connected") == 8
    assert value(exported, "steadfast_experiments", state="COMPLETED") == 1
    assert value(exported, "steadfast_trials", state="COMPLETED") == 3
    assert value(exported, "steadfast_slots", pool="default", state="free") == 2
    assert value(exported, "steadfast_slots", pool="default", state="used") == 0
    assert value(exported, "steadfast_queue_length", pool="default") == 0
    assert value(exported, "steadfast_workers", presence="here") == 1
    assert value(exported, "steadfast_worker_slots") == 2
    assert value(exported, "steadfast_reports_total", group="training") == 15
    assert value(exported, "steadfast_points_total", group="training") == 30
    assert value(exported, "steadfast_log_lines_total") >= 3
    assert value(exported, "steadfast_checkpoint_bytes", state="COMPLETED") >= 1000
    assert value(exported, "steadfast_heartbeat_age_seconds") < 25
    assert value(exported, "steadfast_stream_messages", owner="metrics", stream="REPORTS") >= 1
    assert value(exported, "steadfast_log_lag", owner="searcher", stream="CONTROL") >= 0
    for owner in ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway"):
        assert value(exported, "steadfast_database_bytes", owner=owner) > 0
        assert value(exported, "steadfast_commit_seconds_count", owner=owner) > 0
        assert value(exported, "steadfast_fold_seconds_count", owner=owner) > 0
    assert value(exported, "steadfast_append_seconds_count", owner="searcher") > 0
    assert value(exported, "steadfast_answer_seconds_count", owner="searcher", outcome="ok") > 0
    request = {"method": "GET", "route": "/api/v1/experiments"}
    assert value(exported, "steadfast_requests_total", status="200", **request) >= 1
    assert value(exported, "steadfast_request_seconds_count", **request) >= 1


@pytest.mark.parametrize(("title", "query"), list(queries()))
def test_every_query_names_an_exported_metric(exported, title, query):
    for name, matchers in re.findall(r"\b((?:steadfast|process)_\w+|up)\b(?:{([^}]*)})?", query):
        if name in BUILT_IN:
            continue
        assert name in exported, f"{title}: {name}"
        label_names = {label for labels, _ in exported[name] for label in labels} or None
        for label in re.findall(r"(\w+)=", matchers or ""):
            assert label_names is None or label in label_names, f"{title}: {name} has no label {label}"
    for group in re.findall(r"by \(([^)]*)\) \((?:rate|increase)?\(?(\w+)", query):
        labels, name = group
        label_names = {label for sample_labels, _ in exported.get(name, []) for label in sample_labels}
        if label_names:
            assert {label.strip() for label in labels.split(",")} <= label_names, f"{title}: {query}"


def test_the_dashboard_is_what_its_rows_make():
    path = DEPLOY / "grafana" / "generate.py"
    spec = importlib.util.spec_from_file_location("grafana_generate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.FILE.read_text() == module.text(), "run: python deploy/grafana/generate.py"


def test_those_who_may_sign_in_read_it_through_the_gateway(cluster):
    for path in ("debug/prom/metrics", "prom/det-state-metrics"):
        assert requests.get(f"{cluster.address}/{path}", timeout=60).status_code == 401
    cluster.get("me")
    bearer = {"Authorization": f"Bearer {cluster._token}"}
    own = read(f"{cluster.address}/debug/prom/metrics", **bearer)
    assert value(own, "steadfast_log_position", owner="gateway", stream="CONTROL") > 0
    id = cluster.det("cmd", "run", "-d", "sleep 600").stdout.strip()
    state = lambda: cluster.get(f"commands/{id}")["command"]["state"]  # noqa: E731
    wait_for(lambda: state() == "STATE_RUNNING", 60, "the start")
    held = read(f"{cluster.address}/prom/det-state-metrics", **bearer)["steadfast_allocation_slots"]
    assert [(labels["task"], labels["agent"], slots) for labels, slots in held] == [
        (id, cluster.workers()[0], 1)
    ]
    cluster.det("cmd", "kill", id)

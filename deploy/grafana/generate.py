"""Generates dashboards/steadfast.json from the rows below: `python deploy/grafana/generate.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "dashboards" / "steadfast.json"
SOURCE = {"type": "prometheus", "uid": "prometheus"}
WIDTH, HEIGHT = 8, 8


def quantile(of: str, by: str, q: float = 0.99) -> str:
    """The `q` quantile of a histogram over the last 5 minutes."""
    return f"histogram_quantile({q}, sum by (le, {by}) (rate({of}_bucket[5m])))"


def slowest(of: str, by: str) -> str:
    """The eight values of `by` with the highest 99th percentile."""
    return f"topk(8, {quantile(of, by)})"


ROWS: dict[str, list[tuple[str, str, dict[str, str]]]] = {
    "Health": [
        (
            "Processes and ready services",
            "short",
            {"sum(up)": "up", "sum(steadfast_ready)": "services ready"},
        ),
        ("Leaders by service", "short", {"sum by (owner) (steadfast_leads)": "{{owner}}"}),
        ("Log lag", "short", {"max by (owner, stream) (steadfast_log_lag)": "{{owner}} {{stream}}"}),
        (
            "Age of the oldest event not folded or not saved",
            "s",
            {
                "max by (owner, stream) (steadfast_log_lag_seconds)": "{{owner}} {{stream}}",
                "max by (owner) (steadfast_unsaved_seconds)": "{{owner}} saving",
            },
        ),
        (
            "Event loop stalls",
            "s",
            {"sum by (owner) (increase(steadfast_loop_blocked_seconds_sum[5m]))": "{{owner}}"},
        ),
        (
            "Requests by status",
            "reqps",
            {"sum by (status) (rate(steadfast_requests_total[1m]))": "{{status}}"},
        ),
        (
            "Slowest routes, p99",
            "s",
            {f"topk(8, {quantile('steadfast_request_seconds', 'route')})": "{{route}}"},
        ),
        (
            "All requests, p50 and p99",
            "s",
            {
                quantile("steadfast_request_seconds", "owner", 0.5): "p50",
                quantile("steadfast_request_seconds", "owner"): "p99",
            },
        ),
    ],
    "Workload": [
        ("Slots", "short", {"sum by (pool, state) (steadfast_slots)": "{{pool}} {{state}}"}),
        (
            "Queue",
            "short",
            {
                "sum by (pool) (steadfast_queue_length)": "{{pool}} waits",
                "sum by (pool) (steadfast_allocations_running)": "{{pool}} runs",
            },
        ),
        ("Workers", "short", {"sum by (pool, presence) (steadfast_workers)": "{{pool}} {{presence}}"}),
        ("Experiments", "short", {"max by (state) (steadfast_experiments)": "{{state}}"}),
        ("Trials", "short", {"max by (state) (steadfast_trials)": "{{state}}"}),
        ("Last heartbeat", "s", {"max by (worker) (steadfast_heartbeat_age_seconds)": "{{worker}}"}),
        ("Runs by worker", "short", {"steadfast_worker_runs": "{{instance}}"}),
    ],
    "Ingest": [
        ("Reports", "cps", {"sum by (group) (rate(steadfast_reports_total[1m]))": "{{group}}"}),
        ("Points", "cps", {"sum by (group) (rate(steadfast_points_total[1m]))": "{{group}}"}),
        ("Log lines", "cps", {"sum(rate(steadfast_log_lines_total[1m]))": "lines"}),
        (
            "Live pages and open requests",
            "short",
            {"sum(steadfast_live_readers)": "live pages", "sum(steadfast_requests_open)": "requests open"},
        ),
    ],
    "Services": [
        (
            "Events folded",
            "cps",
            {"sum by (owner, stream) (rate(steadfast_events_folded_total[1m]))": "{{owner}} {{stream}}"},
        ),
        (
            "Folding a batch, p99",
            "s",
            {quantile("steadfast_fold_seconds", "owner, stream"): "{{owner}} {{stream}}"},
        ),
        ("Events decided", "cps", {"sum by (owner) (rate(steadfast_events_decided_total[1m]))": "{{owner}}"}),
        ("Append to the log, p99", "s", {quantile("steadfast_append_seconds", "owner"): "{{owner}}"}),
        ("Commit to the database, p99", "s", {quantile("steadfast_commit_seconds", "owner"): "{{owner}}"}),
        ("Events folded but not saved", "short", {"max by (owner) (steadfast_unsaved_events)": "{{owner}}"}),
        (
            "Commands and queries, p99",
            "s",
            {slowest("steadfast_answer_seconds", "owner, name"): "{{owner}} {{name}}"},
        ),
        (
            "Rejected appends and newer-version events",
            "short",
            {
                "sum by (owner) (increase(steadfast_fence_lost_total[5m]))": "{{owner}} beaten",
                "sum by (owner, name) (increase(steadfast_events_unknown_total[5m]))": "{{name}} skipped",
            },
        ),
    ],
    "Resources": [
        ("Streams", "bytes", {"max by (stream) (steadfast_stream_bytes)": "{{stream}}"}),
        ("Messages in streams", "short", {"max by (stream) (steadfast_stream_messages)": "{{stream}}"}),
        ("Databases", "bytes", {"max by (owner) (steadfast_database_bytes)": "{{owner}}"}),
        ("Checkpoints", "bytes", {"max by (state) (steadfast_checkpoint_bytes)": "{{state}}"}),
        ("Memory", "bytes", {"process_resident_memory_bytes": "{{instance}}"}),
        ("Processors", "short", {"rate(process_cpu_seconds_total[1m])": "{{instance}}"}),
    ],
}


def panel(id: int, title: str, unit: str, queries: dict[str, str], x: int, y: int) -> dict[str, Any]:
    """One time series chart."""
    return {
        "id": id,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": unit, "min": 0, "custom": {"showPoints": "never"}},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(65 + n), "datasource": SOURCE, "expr": expr, "legendFormat": legend}
            for n, (expr, legend) in enumerate(queries.items())
        ],
    }


def dashboard() -> dict[str, Any]:
    """All rows, one below the other, three charts wide."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, charts in ROWS.items():
        here = {"x": 0, "y": y, "w": 24, "h": 1}
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": here, "panels": []})
        y += 1
        for number, (name, unit, queries) in enumerate(charts):
            column, row = number % 3, number // 3
            panels.append(panel(len(panels) + 1, name, unit, queries, column * WIDTH, y + row * HEIGHT))
        y += -(-len(charts) // 3) * HEIGHT
    return {
        "uid": "steadfast",
        "title": "Steadfast",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "tags": ["steadfast"],
        "panels": panels,
    }


def text() -> str:
    """The content of the file."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())

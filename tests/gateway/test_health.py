"""What the gateway says of the cluster's health: as a whole, of each part, and why."""

from __future__ import annotations

import msgspec
import pytest

from det_contracts import subjects
from services.kit import conditions as names
from services.kit.cluster_monitor import OWNERS
from services.kit.conditions import KINDS, Trouble
from services.kit.lag import SAVING
from services.kit.log_progress import LogProgress, ProcessProgress


def health_report(gateway, **headers):
    """The report, and the status of the answer at the root, to somebody without a session."""
    gateway.client.headers.pop("Authorization", None)
    root = gateway.send("GET", "/health")
    report = gateway.get("/api/v1/master/health")
    same = {key: value for key, value in root.json().items() if key != "time"}
    assert same == {key: value for key, value in report.items() if key != "time"}
    return root.status_code, report


def sign(gateway, program, condition, about="", message="wrong"):
    trouble = Trouble(condition, about, message, 5.0, program)
    gateway.signs.record(subjects.health_sign(program, "x"), msgspec.json.encode([trouble]))


def test_all_is_up(gateway):
    status, report = health_report(gateway)
    assert (status, report["status"], report["reasons"]) == (200, "up", [])
    assert set(report["parts"].values()) == {"up"}
    assert report["position"] == gateway.catalogue.position
    assert report["database"] == "up"


@pytest.mark.parametrize(
    ("condition", "about", "status", "part"),
    [
        (names.NOBODY_LEADS, "searcher", "down", "searcher"),
        (names.NOBODY_LEADS, "scheduler", "down", "scheduler"),
        (names.NOBODY_LEADS, "checkpoints", "degraded", "checkpoints"),
        (names.BROKER_AWAY, "", "down", "broker"),
        (names.STREAM_REFUSES, "CONTROL", "down", "broker"),
        (names.STREAM_REFUSES, "KV_leases", "down", "broker"),
        (names.STREAM_REFUSES, "REPORTS", "degraded", "broker"),
        (names.REPLICA_BEHIND, "CONTROL", "degraded", "broker"),
        (names.DATABASE_FAILS, "", "down", "database"),
        (names.LOG_LAGS, "CONTROL", "degraded", "gateway"),
        (names.LOOP_BLOCKED, "", "degraded", "gateway"),
        (names.STARTING, "", "degraded", "gateway"),
    ],
)
def test_each_condition_makes_its_part_and_the_whole_what_they_are(gateway, condition, about, status, part):
    gateway.conditions.set_condition(
        condition, {about: "something is wrong"}, {about: "at 10.0.0.7: /secret/path"}
    )
    code, report = health_report(gateway)
    assert (code, report["status"]) == (503 if status == "down" else 200, status)
    (reason,) = report["reasons"]
    assert (reason["condition"], reason["message"]) == (condition, "something is wrong")
    assert reason["action"] == KINDS[condition].action
    assert reason["since"].endswith("Z")
    wrong = {name: state for name, state in report["parts"].items() if state != "up"}
    assert set(wrong) == {part}
    assert report["database"] == report["parts"]["database"]
    # What names hosts and paths is for operators, and anybody may ask here.
    assert "secret" not in str(report)
    gateway.conditions.set_condition(condition, {})
    assert health_report(gateway)[1]["status"] == "up"


def test_what_other_processes_say_of_themselves_counts(gateway):
    sign(gateway, "metrics", names.DATABASE_FAILS)
    sign(gateway, "worker", names.LOG_LAGS, "CONTROL")
    _, report = health_report(gateway)
    assert report["status"] == "degraded"
    wrong = {name: state for name, state in report["parts"].items() if state != "up"}
    assert wrong == {"metrics": "degraded", "workers": "degraded"}
    assert {reason["program"] for reason in report["reasons"]} == {"metrics", "worker x"}
    gateway.signs.record(subjects.health_sign("metrics", "x"), b"[]")
    gateway.signs.record(subjects.health_sign("worker", "x"), b"[]")
    assert health_report(gateway)[1]["status"] == "up"


def test_a_worker_cannot_bring_the_cluster_down_by_what_it_says(gateway):
    for condition in KINDS:
        for about in ("", "CONTROL", "KV_leases", "searcher"):
            sign(gateway, "worker", condition, about)
            _, report = health_report(gateway)
            assert report["status"] == ("degraded" if KINDS[condition].is_reported else "up")
            assert {name for name, state in report["parts"].items() if state != "up"} <= {"workers"}
            gateway.signs.record(subjects.health_sign("worker", "x"), b"[]")


def test_the_positions_of_all_services_with_who_does_not_answer(gateway):
    reading, saving = LogProgress("CONTROL", 90, 12, 3.26), LogProgress(SAVING, 80, 10, 0.0)
    gateway.peers.progress = {
        "searcher": [
            ProcessProgress("ab12", True, [reading, saving]),
            ProcessProgress("cd34", False, [reading]),
        ]
    }
    report = gateway.get("/api/v1/master/positions")
    read = {"stream": "CONTROL", "position": 90, "behind": 12, "lateSeconds": 3.3}
    assert report["processes"] == [
        {
            "program": "searcher",
            "replica": "ab12",
            "leads": True,
            "streams": [read],
            "saved": {"position": 80, "behind": 10, "lateSeconds": 0.0},
        },
        {"program": "searcher", "replica": "cd34", "leads": False, "streams": [read], "saved": None},
    ]
    assert set(report["silent"]) == {*OWNERS} - {"searcher"}


class Waits:
    """Something that waits, for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.completed, self.left, self.age_s = 0, 1, seconds

    def restart_age(self) -> None:
        self.age_s = 0.0


def test_it_says_how_long_the_oldest_event_waits_to_be_read_or_saved(gateway):
    assert health_report(gateway)[1]["lateSeconds"] == 0.0
    gateway.lag |= {"CONTROL": Waits(0.04), SAVING: Waits(2.34)}
    status, report = health_report(gateway)
    # Nothing is wrong yet: a gateway that is a little late goes on serving.
    assert (status, report["status"], report["lateSeconds"]) == (200, "up", 2.3)

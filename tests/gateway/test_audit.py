"""Who did what (our addition)."""

from __future__ import annotations

import csv
import io
import json

import pytest

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, scheduler, searcher, webhooks
from det_contracts.events import gateway as gateway_events
from det_contracts.events.gateway import WorkspaceSet
from services.catalogue.audit import Filter, rows, rows_after
from services.why.event_descriptions import describe
from services.why.history import History
from tests.gateway import stories as story
from tests.gateway.harness import Harness

ARCHIVED = "workspace '=cmd()' was saved, and is archived"
URL = "/api/v1/master/audit"


@pytest.fixture
def busy(gateway):
    """What `admin` and `determined` did in this order; a password among it."""
    gateway.log_in("admin")
    gateway.post("/api/v1/users", {"user": {"username": "ann"}, "password": "secret"})
    gateway.log_in("determined")
    gateway.post("/api/v1/workspaces", {"name": "=cmd()"})
    gateway.post("/api/v1/workspaces/2/projects", {"name": "Digits"})
    gateway.post("/api/v1/workspaces/2/archive")
    return gateway


def entries(gateway, **params):
    return gateway.get(URL, **params)["entries"]


def test_each_command_that_changed_something_has_an_entry(busy):
    changes = [entry for entry in entries(busy) if entry["event"] != "gateway.session.opened"]
    assert [(entry["username"], entry["event"]) for entry in changes] == [
        ("determined", "gateway.workspace.set"),
        ("determined", "gateway.project.set"),
        ("determined", "gateway.workspace.set"),
        ("admin", "gateway.user.password_set"),
        ("admin", "gateway.user.set"),
    ]
    assert changes[0]["about"] == "workspace 2"
    assert (changes[0]["what"], changes[0]["reason"]) == (ARCHIVED, "changed by determined")
    assert changes[0]["time"].endswith("Z")
    assert "secret" not in json.dumps(changes)


def test_who_logged_in_is_named(busy):
    opened = entries(busy, event="gateway.session.opened")
    sentences = {entry["username"]: entry["what"] for entry in opened}
    assert sentences == {name: f"user {name} logged in from 127.0.0.1" for name in ("admin", "determined")}


def test_what_nobody_asked_for_is_no_entry(busy):
    before = entries(busy)
    busy.apply(story.created(1), story.trial_created(1), *story.running(1))
    assert entries(busy) == before


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ({"users": "ann"}, 0),
        ({"users": ["admin", "ann"], "event": "gateway.user"}, 2),
        ({"userIds": 2, "event": "gateway.workspace"}, 2),
        ({"about": "project 2"}, 1),
        ({"event": "gateway.work%"}, 0),
        ({"until": "2001-01-01T00:00:00Z"}, 0),
        ({"since": "2001-01-01T00:00:00Z", "event": "gateway.project"}, 1),
    ],
)
def test_entries_are_filtered(busy, params, count):
    assert len(entries(busy, **params)) == count


def test_pages_follow_one_another(busy):
    whole = entries(busy)
    first = busy.get(URL, limit=2)
    second = entries(busy, before=first["entries"][-1]["position"])
    assert first["more"] is True
    assert first["entries"] + second == whole
    assert "limit" in busy.refused(400, "GET", URL, params={"limit": 0})


def test_all_of_it_is_taken_away(busy, monkeypatch):
    monkeypatch.setattr("services.rest_routes.people.audit.MAX_ENTRIES", 2)
    whole = busy.get(URL, limit=2)["entries"]
    lines = [json.loads(line) for line in busy.send("GET", f"{URL}/export?format=json").text.splitlines()]
    assert lines[::-1][:2] == whole
    rows = list(csv.DictReader(io.StringIO(busy.send("GET", f"{URL}/export").text)))
    assert [int(row["position"]) for row in rows] == [line["position"] for line in lines]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert "format" in busy.refused(400, "GET", f"{URL}/export", params={"format": "xml"})


def test_a_rebuilt_table_is_the_same(busy, tmp_path):
    (tmp_path / "other").mkdir()
    other = Harness(tmp_path / "other", busy)

    def rows(harness):
        return harness.run(harness.catalogue.read(lambda c: rows_after(c, Filter(), 1000, 0)))

    assert rows(other) == rows(busy) != []
    other.close()


def test_what_came_of_no_command_is_no_entry(busy):
    busy.apply(WorkspaceSet(workspace_id=9, name="x", owner="ann", reason="made by ann"))
    assert all(entry["about"] != "workspace 9" for entry in entries(busy)), "that was nobody's command"


@pytest.mark.parametrize("owner", [searcher, scheduler, checkpoints, webhooks, gateway_events])
def test_what_is_remembered_of_a_request_is_no_entry_beside_what_it_made(owner):
    """Of every owner: it would say once more, in words of programs, what the entry before it says."""
    creation = owner.CreationKept("r-1", "a-key", "digest", 7, "the request carried an Idempotency-Key")
    moved = gateway_events.ExperimentMoved(7, 1, "moved by ann")
    audit_rows = rows(
        [Recorded(at, event, str(at), "user:ann", 1.0) for at, event in enumerate((creation, moved), 1)]
    )
    assert [row["event"] for row in audit_rows] == ["gateway.experiment.moved"]


def test_a_change_is_described_with_singular_and_plural_fields():
    changes = ({"labels": ["a"]}, {"labels": ["a"], "notes": "b"}, {})
    sentences = [
        describe(searcher.ExperimentRevised(7, change, "asked"), History()).what for change in changes
    ]
    assert sentences == [
        "experiment 7 was changed: labels",
        "experiment 7 was changed: labels, notes",
        "experiment 7 was not changed",
    ]

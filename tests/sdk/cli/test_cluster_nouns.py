"""`det agent`, `slot`, `checkpoint`, `master` and `version`."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from determined import yamlfile
from determined.__version__ import __version__
from tests.sdk.fake_gateway import Raw

SLOTS = {
    "/agents/a1/slots/1": {
        "id": "1",
        "device": {"type": "TYPE_CUDA", "brand": "H200"},
        "enabled": True,
        "container": None,
    },
    "/agents/a1/slots/0": {
        "id": "0",
        "device": {"type": "TYPE_CUDA", "brand": "H200"},
        "enabled": True,
        "draining": False,
        "container": {"id": "c-1"},
    },
    "/agents/a1/slots/10": {"id": "10", "device": {}, "enabled": False, "container": {"id": "c-of-nobody"}},
}
AGENT = {
    "id": "a1",
    "version": "0.25.0",
    "registeredTime": "2023-08-01T12:00:00Z",
    "slots": SLOTS,
    "containers": {"c-1": {}},
    "resourcePools": ["default"],
    "addresses": ["10.0.0.1", "fe80::1"],
    "enabled": True,
    "draining": False,
    "runLimits": [
        {"kind": "memory", "holds": False, "text": "STEADFAST_WORKER_SLOT_MEMORY_MIB is not set"},
        {"kind": "disk", "holds": True, "text": "10 MiB in the folder of the run"},
    ],
}


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("words", [("a",), ("agent", "list")])
def test_agents(master, det, words):
    master.answer("GET", "/api/v1/agents", {"agents": [AGENT]})
    out = det(*words).out
    assert "a1       | 0.25.0  | 2023-08-01 12:00:00+0000 |     3 |          1 | default" in out


def test_agents_as_json_and_csv(master, det):
    master.answer("GET", "/api/v1/agents", {"agents": [AGENT]})
    (agent,) = json.loads(det("a", "ls", "--json").out)
    assert (agent["id"], agent["num_slots"], agent["addresses"]) == ("a1", 3, "10.0.0.1, fe80::1")
    (row,) = rows(det("a", "list", "--csv").out)
    assert list(row) == [
        *("Agent ID", "Version", "Registered Time", "Slots", "Containers"),
        *("Resource Pool", "Enabled", "Draining", "Addresses", "Limits of Runs"),
    ]
    assert (row["Addresses"], row["Limits of Runs"]) == ("10.0.0.1, fe80::1", "disk")


def test_an_agent_tells_what_its_runs_may_use(master, det):
    master.answer("GET", "/api/v1/agents/a1", {"agent": AGENT})
    out = det("agent", "describe", "a1").out
    assert "registered_time | 2023-08-01 12:00:00+0000" in out
    assert "memory        | False | STEADFAST_WORKER_SLOT_MEMORY_MIB is not set" in out
    assert "disk          | True  | 10 MiB in the folder of the run" in out
    assert json.loads(det("agent", "describe", "a1", "--json").out)["runLimits"] == AGENT["runLimits"]


def test_slots_show_what_runs_on_them(master, det):
    allocation = {
        "name": "Trial 1 (Experiment 1)",
        "allocation_id": "1.1.1",
        "resources": [{"container_id": "c-1"}],
    }
    master.answer("GET", "/api/v1/agents", {"agents": [AGENT]})
    master.answer("GET", "/tasks", {"1.1.1": allocation})
    slots = rows(det("slot", "list", "--csv").out)
    assert [(row["Slot ID"], row["Allocation ID"], row["Task Name"]) for row in slots] == [
        ("0", "1.1.1", "Trial 1 (Experiment 1)"),
        ("1", "FREE", "FREE"),
        ("10", "OTHER", "OTHER"),
    ]
    assert (slots[0]["Type"], slots[0]["Device"]) == ("cuda", "H200")
    assert json.loads(det("slot", "list", "--json").out)[0]["resource_pools"] == "default"


def test_slots_of_an_empty_cluster(master, det):
    master.answer("GET", "/api/v1/agents", {"agents": []})
    master.answer("GET", "/tasks", {})
    assert det("s", "list", "--json").out == "[]\n"


def test_describe_a_checkpoint(master, det):
    checkpoint = {
        "uuid": "u-1",
        "reportTime": "2023-08-01T12:00:00Z",
        "metadata": {"steps_completed": 10},
        "training": {"experimentId": 7, "trialId": 2, "validationMetrics": {"avgMetrics": {"loss": 0.5}}},
    }
    master.answer("GET", "/api/v1/checkpoints/u-1", {"checkpoint": checkpoint})
    header, _, row = det("c", "describe", "u-1").out.splitlines()
    assert [cell.strip() for cell in header.split("|")] == [
        *("Experiment ID", "Trial ID", "Steps Completed", "Report Time", "Checkpoint UUID"),
        *("Validation Metrics", "Metadata"),
    ]
    assert [cell.strip() for cell in row.split("|")] == [
        *("7", "2", "10", "2023-08-01 12:00:00+0000", "u-1"),
        *('{"loss": 0.5}', '{"steps_completed": 10}'),
    ]


def test_describe_an_unknown_checkpoint(master, det):
    assert det("checkpoint", "describe", "nope").status == 1


def test_master_info(master, det):
    info = {"version": "0.25.0", "clusterId": "c-1"}
    master.answer("GET", "/api/v1/master", info)
    assert json.loads(det("master", "info", "--json").out) == info
    assert yamlfile.parse(det("master", "info", "--yaml").out) == info
    assert det("master", "info").out == det("master", "info", "--yaml").out
    assert master.calls_to("POST", "/api/v1/auth/login") == []


WELL = {"status": "up", "position": 7, "parts": {"broker": "up", "searcher": "up"}, "reasons": []}
NOBODY = {
    "condition": "nobody_leads",
    "about": "searcher",
    "program": "gateway",
    "message": "nobody decides for the searcher",
    "since": "2023-08-01T12:00:00.000Z",
    "action": "Look whether a replica of it runs.",
}


def test_master_health(master, det):
    master.answer("GET", "/api/v1/master/health", WELL)
    result = det("master", "health")
    assert result.status == 0
    assert f"{master.url} is up\n" in result.out
    down = WELL | {"status": "down", "parts": {"broker": "up", "searcher": "down"}, "reasons": [NOBODY]}
    master.answer("GET", "/api/v1/master/health", down)
    result = det("master", "health")
    assert result.status == 1
    assert " searcher | down" in result.out
    for words in ("nobody decides for the searcher", "since 2023-08-01T12:00", "Look whether a replica"):
        assert words in result.out
    as_json = det("master", "health", "--json")
    assert (as_json.status, json.loads(as_json.out)) == (1, down)
    assert master.calls_to("POST", "/api/v1/auth/login") == []


def test_version_of_both(master, det):
    assert yamlfile.parse(det("version").out) == {
        "client": {"version": __version__},
        "master": {"cluster_id": "c-1", "master_id": "m-1", "version": "0.25.0"},
        "master_address": master.url,
    }


def test_version_without_a_master(det, monkeypatch):
    monkeypatch.setenv("DET_MASTER", "127.0.0.1:1")
    result = det("version")
    assert result.status == 0
    assert yamlfile.parse(result.out)["master"] == {"cluster_id": "", "master_id": "", "version": ""}


ENTRY = {
    "position": 7,
    "time": "2023-08-01T12:00:00Z",
    "username": "ann",
    "event": "searcher.experiment.paused",
    "about": "experiment 3",
    "what": "experiment 3 was paused",
    "reason": "paused by ann",
}


def test_who_did_what(master, det):
    master.answer("GET", "/api/v1/master/audit", {"entries": [ENTRY], "more": True})
    words = ("--user", "ann", "--user", "bo", "--about", "experiment 3", "--since", "2023-08-01T00:00:00Z")
    out = det("master", "audit", *words, "--limit", "1").out
    assert "2023-08-01T12:00:00Z | ann  | experiment 3 | experiment 3 was paused | paused by ann" in out
    assert "--until 2023-08-01T12:00:00Z" in out
    (call,) = master.calls_to("GET", "/api/v1/master/audit")
    assert call.query == {
        "users": ["ann", "bo"],
        "about": ["experiment 3"],
        "since": ["2023-08-01T00:00:00Z"],
        "limit": ["1"],
    }


def test_who_did_what_is_taken_away(master, det):
    url, line = "/api/v1/master/audit/export", b'{"position":7}\n'
    master.answer("GET", url, Raw(line))
    assert det("master", "audit", "--json", "--event", "searcher").out == line.decode()
    (call,) = master.calls_to("GET", url)
    assert call.query == {"event": ["searcher"], "format": ["json"]}


def test_how_the_archive_stands(master, det):
    archive = {"place": "", "segments": 0, "bytes": 0, "archived": 0, "first": 1, "last": 70}
    master.answer("GET", "/api/v1/master/archive", archive)
    assert "There is no archive" in det("master", "archive").out
    archive |= {"place": "directory /old", "segments": 2, "bytes": 12345, "archived": 50, "first": 31}
    master.answer("GET", "/api/v1/master/archive", archive)
    out = det("master", "archive").out
    assert "in the broker: events 31 to 70" in out
    assert "events up to 50, 2 segments, 12,345 bytes in directory /old" in out
    assert json.loads(det("master", "archive", "--json").out) == archive


def test_what_the_cluster_passed_over(master, det):
    unreadable = {"position": 41, "subject": "control.trial.3.progress", "reason": "damaged"}
    record = {"program": "searcher", "since": "2023-08-01T12:00:00Z", "message": "trial 7: too large"}
    answer = {"unreadable": [unreadable], "more": True, "parked": [record]}
    master.answer("GET", "/api/v1/master/parked", answer)
    out = det("master", "parked").out
    assert "41 | control.trial.3.progress | damaged" in out
    assert "There are older ones." in out
    assert "searcher | 2023-08-01T12:00:00Z | trial 7: too large" in out
    assert json.loads(det("master", "parked", "--json").out) == answer


def test_events_at_which_a_service_stands_still_are_listed_and_skipped(master, det):
    event = {"program": "searcher", "since": "2023-08-01T12:00:00Z", "stream": "CONTROL", "position": 41}
    event |= {"subject": "control.trial.3.progress", "error": "KeyError(3)"}
    answer = {"unreadable": [], "more": False, "parked": [], "standing": [event]}
    master.answer("GET", "/api/v1/master/parked", answer)
    row = "searcher | 2023-08-01T12:00:00Z | CONTROL | 41 | control.trial.3.progress | KeyError(3)"
    assert row in re.sub(" +", " ", det("master", "parked").out)
    master.answer("POST", "/api/v1/master/parked/skip", {})
    output = det("master", "skip-event", "searcher", "41", "--reason", "bug 45", "--yes").out
    assert "The searcher skips event 41 of CONTROL and continues" in output
    (call,) = master.calls_to("POST", "/api/v1/master/parked/skip")
    assert call.json == {"program": "searcher", "stream": "CONTROL", "position": 41, "reason": "bug 45"}


def test_a_database_is_rebuilt(master, det):
    master.answer("POST", "/api/v1/master/rebuild", {})
    assert "The searcher rebuilds its database" in det("master", "rebuild", "searcher", "--yes").out
    (call,) = master.calls_to("POST", "/api/v1/master/rebuild")
    assert call.json == {"program": "searcher"}
    programs = [
        {"program": "gateway", "progress": ""},
        {"program": "metrics", "progress": "", "refused": "page ab is damaged"},
        {"program": "searcher", "progress": "event 7 of 41", "refused": ""},
    ]
    master.answer("GET", "/api/v1/master/rebuild", {"programs": programs})
    out = det("master", "rebuild").out
    assert "gateway  | -" in out
    assert "metrics  | refused: page ab is damaged" in out
    assert "searcher | event 7 of 41" in out


def test_a_service_looks_again_at_what_it_parked(master, det):
    master.answer("POST", "/api/v1/master/parked/retry", {})
    assert "The searcher retries what it parked" in det("master", "retry-parked", "searcher").out
    (call,) = master.calls_to("POST", "/api/v1/master/parked/retry")
    assert call.json == {"program": "searcher"}


@pytest.mark.parametrize(
    ("words", "log"),
    [
        (["--level", "debug"], {"level": "debug"}),
        (["--color", "off"], {"color": False}),
        (["--level", "warn", "--color", "on"], {"level": "warn", "color": True}),
    ],
)
def test_the_master_logs_otherwise_from_now_on(master, det, words, log):
    master.answer("PATCH", "/api/v1/master/config", {})
    assert (
        "The log settings of the services have been changed" in det("master", "config", "--log", *words).out
    )
    (call,) = master.calls_to("PATCH", "/api/v1/master/config")
    assert call.json == {"config": {"log": log}, "fieldMask": {"paths": [f"log.{name}" for name in log]}}


@pytest.mark.parametrize("words", [["--log"], ["--level", "debug"], ["--color", "on"]])
def test_how_to_log_is_asked_for_whole(master, det, words):
    done = det("master", "config", *words)
    assert done.status == 1
    assert "det master config --log --level LEVEL --color on|off" in done.err
    assert master.calls_to("PATCH", "/api/v1/master/config") == []

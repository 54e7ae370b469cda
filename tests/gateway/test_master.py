"""The cluster's log in words, its configuration, and what lines of logs differ in."""

from __future__ import annotations

import msgspec
import pytest

from det_contracts import queries
from det_contracts.events.decision import Decision
from det_contracts.events.gateway import (
    DecisionsRetried,
    EventSkipped,
    LoggingSet,
    RebuildAsked,
    RebuildFromCopyAsked,
    SkippedEvent,
)
from det_contracts.events.metrics import DatabaseCopied
from services.kit import conditions
from services.kit.conditions import Trouble
from services.kit.log import Draft
from tests.gateway import stories as story


@pytest.fixture
def story_told(gateway):
    """Three events behind a first decision, by which the intake leads."""
    gateway.apply(story.created(1), story.trial_created(1), story.run_requested(1))
    return gateway


def messages(gateway, **params):
    return [row["result"]["logEntry"] for row in gateway.lines("/api/v1/master/logs", **params)]


def test_every_event_is_a_line(story_told):
    entries = messages(story_told)
    assert [entry["id"] for entry in entries] == [2, 3, 4]
    assert entries[0]["message"] == "experiment 1 was created: submitted by determined [test]"
    assert "run 1" in entries[2]["message"]
    assert (entries[0]["level"], entries[0]["timestamp"]) == ("LOG_LEVEL_INFO", "2023-11-14T22:13:20.000000Z")


def test_what_leads_a_batch_of_decisions_is_none(story_told):
    story_told.apply(Decision("searcher", 3, 1, "r"))
    assert [entry["id"] for entry in messages(story_told)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("params", "ids"),
    [
        ({"offset": 2}, [3, 4]),
        ({"offset": -1}, [4]),
        ({"limit": 2}, [2, 3]),
        ({"offset": -2, "limit": 1}, [3]),
        ({"offset": -99}, [2, 3, 4]),
        ({"offset": 99}, []),
    ],
)
def test_parts_of_it(story_told, params, ids):
    assert [entry["id"] for entry in messages(story_told, **params)] == ids


def test_a_negative_limit(gateway):
    assert "Limit" in gateway.refused(400, "GET", "/api/v1/master/logs", params={"limit": -1})


def test_the_configuration_is_for_administrators(gateway):
    assert "not an administrator" in gateway.refused(403, "GET", "/api/v1/master/config")
    gateway.log_in("admin")
    config = gateway.get("/api/v1/master/config")["config"]
    assert (config["cluster_id"], config["checkpoint_storage"]["type"]) == ("c-1", "shared_fs")


def test_what_lines_differ_in(gateway):
    gateway.apply(story.created(1), story.trial_created(1))
    gateway.peers.values[queries.LogFields] = {
        "places": [["1.r1.1", "w-1"], ["1.r1.1", ""]],
        "ranks": [None, 0, 1],
        "stdtypes": ["stderr", "stdout"],
        "sources": ["master", "task"],
    }
    (row,) = gateway.lines("/api/v1/trials/1/logs/fields")
    fields = row["result"]
    assert (fields["allocationIds"], fields["agentIds"], fields["rankIds"]) == (["1.r1.1"], ["w-1"], [0, 1])
    assert len(fields["containerIds"]) == 1
    assert gateway.lines("/api/v1/tasks/1.r1/logs/fields")[0]["result"] == fields


def test_what_retention_would_delete(gateway):
    gateway.apply(story.created(1), story.trial_created(1), story.stored(1, "c-1", 10))
    questions = []
    gateway.peers.values[queries.PreviewRetention] = lambda query: questions.append(query) or ["c-1", "gone"]
    path = "/experiments/1/preview_gc?save_experiment_best=1&save_trial_best=2&save_trial_latest=3"
    answer = gateway.send("GET", path).json()
    assert [row["uuid"] for row in answer["checkpoints"]] == ["c-1"]
    assert answer["metric_name"] == "loss"
    (checkpoint,) = answer["checkpoints"]
    as_before = ("TrialID", "ReportTime", "UUID", "StepsCompleted", "State", "ValidationMetrics", "Resources")
    assert {name: checkpoint[name] for name in as_before} == {
        "TrialID": 1,
        "ReportTime": checkpoint["reportTime"],
        "UUID": "c-1",
        "StepsCompleted": 10,
        "State": "COMPLETED",
        "ValidationMetrics": {},
        "Resources": {name: int(size) for name, size in checkpoint["resources"].items()},
    }
    assert (questions[0].experiment_best, questions[0].trial_best, questions[0].trial_latest) == (1, 2, 3)
    assert gateway.send("GET", path.replace("best=1", "best=-1")).status_code == 400


def test_messages_that_nobody_can_read_are_listed_with_their_positions(story_told):
    story_told.run(story_told.journal.append(Draft("control.searcher.trial.1.announced", b"{", "broken")))
    story_told.settle()
    story_told.apply(story.created(2))
    answer = story_told.get("/api/v1/master/parked")
    row = {"position": 5, "subject": "control.searcher.trial.1.announced", "reason": "damaged"}
    assert answer == {"unreadable": [row], "more": False, "parked": [], "standing": []}


def test_the_newest_that_nobody_can_read_come_first(story_told):
    for number in range(3):
        draft = Draft(f"control.searcher.trial.{number}.announced", b"{", str(number))
        story_told.run(story_told.journal.append(draft))
    story_told.settle()
    answer = story_told.get("/api/v1/master/parked", limit=2)
    assert ([row["position"] for row in answer["unreadable"]], answer["more"]) == ([7, 6], True)
    assert "limit must be 1 to" in story_told.refused(400, "GET", "/api/v1/master/parked?limit=0")


def test_records_that_nothing_can_be_decided_about_are_listed(gateway):
    gateway.conditions.set_condition(
        conditions.DECISIONS_PARKED, {"trial 7": "nothing can be decided about trial 7"}
    )
    (parked,) = gateway.get("/api/v1/master/parked")["parked"]
    assert (parked["about"], parked["message"]) == ("trial 7", "nothing can be decided about trial 7")


STANDS = Trouble(
    "event_fails", "CONTROL 41 control.trial.7.progressed", "it stands still", 0.0, "searcher", "KeyError(7)"
)


def test_a_service_that_stands_still_at_an_event_is_listed_with_the_error(gateway):
    gateway.signs.record("health.sign.searcher.r1", msgspec.json.encode([STANDS]))
    (standing,) = gateway.get("/api/v1/master/parked")["standing"]
    action = standing.pop("action")
    assert "det master skip-event" in action
    assert standing == {
        "program": "searcher",
        "stream": "CONTROL",
        "position": 41,
        "subject": "control.trial.7.progressed",
        "error": "KeyError(7)",
        "since": "1970-01-01T00:00:00.000Z",
    }
    # Errors may quote anything: only who may read the log sees them.
    (reason,) = [entry for entry in gateway.get("/health")["reasons"] if entry["condition"] == "event_fails"]
    assert "KeyError" not in str(reason)


def test_an_administrator_has_a_service_skip_the_event_at_which_it_stands(gateway):
    path, body = "/api/v1/master/parked/skip", {"program": "searcher", "position": 41, "reason": "bug 45"}
    gateway.refused(403, "POST", path, body)
    gateway.log_in("admin")
    message = gateway.refused(400, "POST", path, body)
    assert "the searcher does not stand still at event 41 of CONTROL; see 'det master parked'" in message
    gateway.signs.record("health.sign.searcher.r1", msgspec.json.encode([STANDS]))
    assert "does not stand still at event 42" in gateway.refused(400, "POST", path, body | {"position": 42})
    assert "reason: say why" in gateway.refused(400, "POST", path, body | {"reason": " "})
    gateway.post(path, body)
    (stated,) = gateway.events_of(EventSkipped)
    assert (stated.owner, stated.position, stated.error) == ("searcher", 41, "KeyError(7)")
    assert stated.reason == "asked for by admin: bug 45"
    assert "the searcher skips event 41 of CONTROL already" in gateway.refused(400, "POST", path, body)
    # The newest decision names all of them: it alone is looked for by whoever starts.
    other = msgspec.structs.replace(STANDS, about="LOGS 7 logs.1")
    gateway.signs.record("health.sign.searcher.r1", msgspec.json.encode([other]))
    gateway.post(path, body | {"stream": "LOGS", "position": 7})
    assert gateway.events_of(EventSkipped)[-1].skipped == (
        SkippedEvent("CONTROL", 41),
        SkippedEvent("LOGS", 7),
    )


def test_an_administrator_has_a_service_look_again_at_what_it_parked(gateway):
    gateway.refused(403, "POST", "/api/v1/master/parked/retry", {"program": "searcher"})
    gateway.log_in("admin")
    gateway.post("/api/v1/master/parked/retry", {"program": "searcher"})
    (stated,) = gateway.events_of(DecisionsRetried)
    assert (stated.owner, stated.reason) == ("searcher", "asked for by admin")
    message = gateway.refused(400, "POST", "/api/v1/master/parked/retry", {"program": "worker vm"})
    assert "program: 'worker vm' makes no decisions; give one of checkpoints, gateway, " in message


def test_an_administrator_has_a_database_rebuilt_and_sees_how_far_it_is(gateway):
    path = "/api/v1/master/rebuild"
    gateway.refused(403, "POST", path, {"program": "searcher"})
    gateway.log_in("admin")
    gateway.post(path, {"program": "searcher"})
    (stated,) = gateway.events_of(RebuildAsked)
    assert (stated.owner, stated.reason) == ("searcher", "asked for by admin")
    refusal = gateway.refused(400, "POST", path, {"program": "metrics"})
    assert "reports and log lines that are no longer in the broker" in refusal
    assert "STEADFAST_METRICS_STORE" in refusal
    refusal = gateway.refused(400, "POST", path, {"program": "worker vm"})
    assert "'worker vm' has no database; give one of checkpoints, gateway, scheduler, " in refusal
    rebuilding = msgspec.structs.replace(STANDS, condition="rebuilding", about="", message="event 7 of 41")
    gateway.signs.record("health.sign.searcher.r1", msgspec.json.encode([rebuilding]))
    programs = {row["program"]: row["progress"] for row in gateway.get(path)["programs"]}
    assert "metrics" not in programs
    assert (programs["searcher"], programs["scheduler"]) == ("event 7 of 41", "")


def test_a_metrics_database_that_was_copied_is_rebuilt_and_a_refusal_says_why(gateway):
    path = "/api/v1/master/rebuild"
    gateway.log_in("admin")
    for owner in ("metrics", "metrics-2"):
        gateway.refused(400, "POST", path, {"program": owner})
    gateway.apply(
        DatabaseCopied(owner="metrics", copy="ab", before="", through={}, size=1, reason="it had changed")
    )
    gateway.post(path, {"program": "metrics"})
    (stated,) = gateway.events_of(RebuildFromCopyAsked)
    assert (stated.owner, stated.reason) == ("metrics", "asked for by admin")
    assert "metrics-2" in gateway.refused(400, "POST", path, {"program": "metrics-2"})
    refused = msgspec.structs.replace(
        STANDS,
        condition="rebuild_refused",
        about="",
        message="its database was not rebuilt",
        detail="page ab",
    )
    gateway.signs.record("health.sign.metrics.r1", msgspec.json.encode([refused]))
    programs = {row["program"]: row for row in gateway.get(path)["programs"]}
    assert programs["metrics"] == {"program": "metrics", "progress": "", "refused": "page ab"}
    assert programs["searcher"]["refused"] == ""
    assert "metrics-2" not in programs


@pytest.mark.parametrize(
    ("paths", "log", "stated"),
    [
        (["log"], {"level": "debug", "color": False}, [("level", "DEBUG"), ("color", "off")]),
        (["log.level"], {"level": "WARN", "color": True}, [("level", "WARNING")]),
        (["log.color"], {"color": True}, [("color", "on")]),
        (
            ["log.color", "log.level"],
            {"level": "fatal", "color": True},
            [("level", "ERROR"), ("color", "on")],
        ),
        ([], {"level": "trace"}, [("level", "DEBUG")]),
    ],
)
def test_an_administrator_has_services_print_otherwise(gateway, paths, log, stated):
    gateway.log_in("admin")
    body = {"config": {"log": log}, "fieldMask": {"paths": paths}}
    shown = gateway.send("PATCH", "/api/v1/master/config", body).json()["config"]
    assert shown["cluster_name"]
    for part, value in stated:
        assert shown["log"][part] == (value == "on" if part == "color" else value.lower())
    assert [(event.part, event.value) for event in gateway.events_of(LoggingSet)] == stated
    assert {event.reason for event in gateway.events_of(LoggingSet)} == {"asked for by admin"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"config": {"log": {"level": "loud"}}}, "log.level must be one of trace, debug, "),
        ({"config": {"log": {}}, "fieldMask": {"paths": ["log"]}}, "nothing was asked for: give config.log"),
        (
            {"config": {"log": {"level": "info"}}, "fieldMask": {"paths": ["log.color"]}},
            "nothing was asked for",
        ),
        ({"config": {"port": 1}, "fieldMask": {"paths": ["port"]}}, "'port' cannot be changed while"),
    ],
)
def test_what_cannot_be_changed_of_the_configuration(gateway, body, message):
    gateway.log_in("admin")
    assert message in gateway.refused(400, "PATCH", "/api/v1/master/config", body)
    assert not gateway.events_of(LoggingSet)


def test_only_administrators_hear_of_the_configuration(gateway):
    gateway.refused(403, "PATCH", "/api/v1/master/config", {"config": {"log": {"level": "debug"}}})

"""Searches that a user's own code decides, over REST; the searcher is its own rules."""

from __future__ import annotations

import json

import pytest

from det_contracts import codec, queries
from det_contracts.commands import PostOperations
from det_contracts.events import searcher
from services.kit.rules import Call
from services.searcher.app import RULES
from tests.gateway import stories as story

ONE = "/api/v1/experiments/1"


@pytest.fixture
def custom(gateway):
    """One custom experiment, ACTIVE; the searcher's rules answer and obey."""

    def state():
        folded = RULES.state()
        for message in gateway.journal.streams["CONTROL"]:
            list(RULES.evolve(folded, codec.decode(message.body, message.position)))
        return folded

    async def obey(command):
        result = RULES.commands[type(command)](state(), command, Call("c", 0.0))
        await gateway.append(*result.events)

    gateway.peers.on_command = obey
    answer = RULES.answers[queries.SearcherEvents]
    gateway.peers.values[queries.SearcherEvents] = lambda query: answer(state(), query)
    created = story.created(1, searcher={"name": "custom", "metric": "loss"})
    return gateway.apply(created, searcher.ExperimentActivated(1, "go"))


def events(gateway, id=1):
    return gateway.get(f"/api/v1/experiments/{id}/searcher_events")["searcherEvents"]


def post(gateway, event, *operations):
    body = {"searcherOperations": list(operations), "triggeredByEvent": {"id": event}}
    return gateway.send("POST", f"{ONE}/searcher_operations", body)


CREATE = {"createTrial": {"requestId": "a", "hyperparams": json.dumps({"lr": 1})}}
TRAIN = {"trialOperation": {"validateAfter": {"requestId": "a", "length": "5"}}}


def test_events_are_read_and_answered(custom):
    assert events(custom) == [{"id": 1, "initialOperations": {}}]
    answer = post(custom, 1, CREATE, TRAIN, {"setSearcherProgress": {"progress": 0.5}})
    assert answer.status_code == 200, answer.text
    (command,) = custom.peers.commands
    assert isinstance(command, PostOperations)
    again = post(custom, 1, CREATE)
    assert (again.status_code, "event 1 not found" in again.text) == (404, True)


def test_a_paused_experiment_is_inactive(custom):
    custom.apply(searcher.ExperimentPaused(1, "paused"))
    assert events(custom) == [{"id": -1, "experimentInactive": {"experimentState": "STATE_PAUSED"}}]


def test_other_searches_have_no_such_events(custom):
    custom.apply(story.created(2))
    assert "is not 'custom'" in custom.refused(400, "GET", "/api/v1/experiments/2/searcher_events")
    custom.refused(404, "GET", "/api/v1/experiments/9/searcher_events")


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([{"dance": {}}], "searcherOperations[0]: one of createTrial"),
        ([CREATE, {"trialOperation": {"validateAfter": {"requestId": "a"}}}], "length is missing"),
        ([{"createTrial": {"requestId": "a", "hyperparams": "[1]"}}], "searcherOperations[0].createTrial"),
        ([{"createTrial": {"requestId": "a", "hyperparams": "{"}}], "searcherOperations[0].createTrial"),
        ([{"setSearcherProgress": {"progress": 10**400}}], "searcherOperations[0].setSearcherProgress"),
        ([{"trialOperation": {"validateAfter": {"requestId": "a", "length": "far"}}}], "trialOperation"),
        ([{"trialOperation": {"validateAfter": "a"}}], "validateAfter must be a JSON object"),
        (
            [{"trialOperation": {"validateAfter": {"requestId": "a", "length": 1e300}}}],
            "length must be at most",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(custom, operations, message):
    answer = post(custom, 1, *operations)
    assert (answer.status_code, message in answer.json()["error"]["error"]) == (400, True)
    assert custom.peers.commands == []
    assert custom.send("POST", f"{ONE}/searcher_operations", {"searcherOperations": []}).status_code == 400

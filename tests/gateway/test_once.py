"""`Idempotency-Key`: whatever a POST makes is made once (REST spec, section 1)."""

from __future__ import annotations

import msgspec
import pytest

from det_contracts import commands, subjects
from det_contracts.creation import Creation, Once
from det_contracts.problems import Refused
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.gateway.http.server import application
from services.kit.idempotency import RequestResult
from services.kit.rules import Call
from services.rest_routes.pages.openapi import document
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from services.webhooks.app import RULES as WEBHOOKS
from tests.gateway import stories as story
from tests.gateway.test_create import YAML
from tests.gateway.test_unmanaged import Searcher

API = "/api/v1"


def webhook(url):
    triggers = [
        {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "STATE_COMPLETED"}}
    ]
    return {"url": url, "triggers": triggers, "webhookType": "WEBHOOK_TYPE_DEFAULT"}


CREATIONS = {
    "/experiments": ({"config": YAML}, {"config": YAML.replace("first", "other")}),
    "/trials": ({"experimentId": 2, "hparams": {"a": 1}}, {"experimentId": 2, "hparams": {"a": 2}}),
    "/commands": ({"config": {"entrypoint": "true"}}, {"config": {"entrypoint": "false"}}),
    "/tensorboards": ({"trialIds": [1]}, {"trialIds": [1], "templateName": ""}),
    "/notebooks": ({"config": {}}, {"config": {"description": "other"}}),
    "/shells": ({"config": {}}, {"config": {"description": "other"}}),
    "/models": ({"name": "m"}, {"name": "n"}),
    "/groups": ({"name": "m"}, {"name": "n"}),
    "/models/{name}/versions": ({"checkpointUuid": "c-1"}, {"checkpointUuid": "c-1", "comment": "x"}),
    "/templates": ({"name": "t", "config": {}}, {"name": "u", "config": {}}),
    "/templates/{name}": ({"config": {}}, {"config": {"name": "u"}}),
    "/users": ({"user": {"username": "ann"}, "password": "x"}, {"user": {"username": "ann"}}),
    "/workspaces": ({"name": "w"}, {"name": "v"}),
    "/workspaces/{id}/projects": ({"name": "p"}, {"name": "q"}),
    "/webhooks": (webhook("https://example.org/a"), webhook("https://example.org/b")),
    "/projects/{id}/notes": ({"name": "a", "contents": "b"}, {"name": "a", "contents": "c"}),
}
VERBS = {
    *("token", "rebuild", "retry", "skip"),
    *("search", "by-ids", "by-assignability", "add-assignments", "remove-assignments"),
    *("activate", "pause", "cancel", "kill", "archive", "unarchive", "move", "pin", "unpin", "enable"),
    *(
        "disable",
        "start",
        "set_priority",
        "password",
        "setting",
        "reset",
        "login",
        "logout",
        "metadata",
        "rm",
    ),
    *("preemption", "ack_preemption", "pending_preemption", "rendezvous", "daemon", "ready", "waiting"),
    *("progress", "early_exit", "completed_operation", "job-queues", "preview-hp-search", "preview"),
    "file",
}
"""Last parts of the addresses of other POSTs: a repeat changes nothing more, or they make nothing."""
ONCE_BY_CONTENT = {
    "/checkpoints": "by its UUID",
    "/experiments/{experiment_id}/searcher_operations": "by the event that it answers",
    "/allocations/{allocation_id}/all_gather": "by its requestUuid",
    "/allocations/{allocation_id}/notify_container_running": "likewise",
    "/allocations/{allocation_id}/proxy_address": "by the address",
    "/resource-pools/{name}/workspace-bindings": "by the workspaces: bound ones stay so",
    "/trials/{trial_id}/metrics": "by run, group and steps",
    "/trials/{trial_id}/training_metrics": "likewise",
    "/trials/{trial_id}/validation_metrics": "likewise",
    "/trial-source-info": "by trial and checkpoint",
    "/users/activity": "by the project: the one that was opened last stays the first",
    "/trials/profiler/metrics": "by what it measures, and when",
    "/tokens": "no: nobody keeps the secret of a token, so a repeat makes another one",
    "/webhooks/{webhook_id}/test": "no: each request is one test",
    "/task-logs": "by its key, or the times of its lines",
}


@pytest.fixture
def busy(gateway):
    """Experiment 1 with a trial and a checkpoint, the unmanaged experiment 2, a worker, model `old`."""
    gateway.peers.on_command = Searcher(gateway)
    gateway.log_in("admin")
    gateway.apply(story.worker_here(slots=4))
    gateway.post(f"{API}/experiments", {"config": YAML, "activate": True})
    gateway.post(f"{API}/experiments", {"config": YAML, "unmanaged": True})
    gateway.apply(story.stored(1, "c-1", 10))
    gateway.post(f"{API}/models", {"name": "old"})
    gateway.post(f"{API}/workspaces", {"name": "old"})
    gateway.post(f"{API}/workspaces/2/projects", {"name": "old"})
    return gateway


def ask(gateway, path, body, key="k"):
    filled = path.replace("{name}", "old").replace("{id}", "2")
    return gateway.send("POST", f"{API}{filled}", body, headers={"Idempotency-Key": key})


def without_age(answer):
    """An experiment is shown as it is now, so a repeat in the next second shows it a second older."""
    return (
        {**answer, "experiment": {**answer["experiment"], "duration": None}}
        if "experiment" in answer
        else answer
    )


@pytest.mark.parametrize("path", CREATIONS)
def test_a_repeated_request_is_answered_as_the_first_and_makes_nothing(busy, path):
    body, other = CREATIONS[path]
    first = ask(busy, path, body)
    assert first.status_code == 200, first.text
    log = len(busy.journal.streams[subjects.CONTROL])
    again = ask(busy, path, body)
    assert (again.status_code, without_age(again.json())) == (200, without_age(first.json()))
    refused = ask(busy, path, other)
    assert refused.status_code == 409
    assert "Idempotency-Key 'k' was used before" in refused.json()["error"]["error"]
    assert len(busy.journal.streams[subjects.CONTROL]) == log


def test_every_post_makes_things_once_or_makes_none(busy):
    paths = document(application(busy.backend))["paths"]
    posts = {path.removeprefix(API) for path, methods in paths.items() if "post" in methods}
    acting = {path for path in posts if path.rpartition("/")[2] in VERBS}
    assert posts - acting == CREATIONS.keys() | ONCE_BY_CONTENT.keys()


def test_a_key_belongs_to_its_user_and_to_one_request(busy):
    assert ask(busy, "/workspaces", {"name": "w"}).status_code == 200
    assert ask(busy, "/models", {"name": "w"}).status_code == 409
    busy.log_in("determined")
    assert ask(busy, "/workspaces", {"name": "mine"}).json()["workspace"]["name"] == "mine"


def test_what_was_refused_may_be_asked_again(busy):
    assert ask(busy, "/workspaces", {"name": ""}).status_code == 400
    assert ask(busy, "/workspaces", {"name": "w"}).status_code == 200


def test_a_key_must_be_short_and_printable(busy):
    for key in ("k" * 256, "a\tb"):
        message = busy.refused(
            400, "POST", f"{API}/workspaces", {"name": "w"}, headers={"Idempotency-Key": key}
        )
        assert message == "Idempotency-Key: at most 255 printable characters are expected"


def test_two_at_the_same_time_are_one(busy):
    """The second has not seen the first: the owner has."""
    first = busy.run(busy.runner.command(_workspace("d"), Call("1", 0.0)))
    assert busy.run(busy.runner.command(_workspace("d"), Call("2", 0.0))) == first
    with pytest.raises(Refused, match="used before"):
        busy.run(busy.runner.command(_workspace("e"), Call("3", 0.0)))


def _workspace(digest):
    return commands.SetWorkspace(name="w", user="ann", once=Once("r-1", "k", digest))


class Anything:
    """A command of an administrator of which nothing is given but that it shall be done once."""

    def __init__(self, once):
        self.once = once
        self.user = "admin"

    def __getattr__(self, name):
        return msgspec.UNSET


@pytest.mark.parametrize("command", Creation.__subclasses__(), ids=lambda kind: kind.__name__)
def test_every_owner_answers_what_it_made_before(command):
    owners = {rules.owner: rules for rules in (SEARCHER, SCHEDULER, CHECKPOINTS, WEBHOOKS, GATEWAY)}
    rules = owners[commands.OWNER_OF[command]]
    state = rules.state()
    state.creations["r-1"] = RequestResult("k", "d", 7)
    request = Anything(Once("r-1", "k", "d"))
    result = rules.commands[command](state, request, Call("c", 0.0))
    assert (result.value, list(result.events)) == (7, [])

"""What the OpenAPI document says of answers, against what routes really answer."""

from __future__ import annotations

import re

import jsonschema
import pytest

from det_contracts import queries
from det_contracts.events import scheduler, webhooks
from services.gateway.http.server import application
from services.kit.lag import SAVING
from services.kit.log_progress import LogProgress, ProcessProgress
from services.rest_routes.pages.openapi import document
from tests.gateway import stories as story

IDS = {"experiment_id": "1", "trial_id": "1", "id": "1", "user_id": "1", "uuid": "c-1", "agent_id": "w-1"}
IDS |= {"name": "digits", "webhook_id": "1"}


def own_task(number, kind):
    sources = [{"experiment_id": 1, "whole": True, "trial_ids": []}]
    return scheduler.TaskSubmitted(
        task_id=f"task-{number}",
        number=number,
        kind=kind,
        user="admin",
        name="own",
        config={"tensorboard": {"sources": sources}, "shell": {"public_key": "a", "host_key": "b"}},
        slots=0,
        pool="default",
        reason="submitted by admin",
    )


@pytest.fixture
def filled(gateway):
    """A gateway with one of everything that has a documented shape."""
    gateway.apply(story.worker_here(), story.created(1, labels=["good"]), story.trial_created(1))
    gateway.apply(
        *story.running(1), story.validated(1, 10, 0.5), story.stored(1, "c-1", 10), story.created(2)
    )
    gateway.apply(own_task(1, "COMMAND"), own_task(2, "TENSORBOARD"))
    gateway.apply(own_task(3, "NOTEBOOK"), own_task(4, "SHELL"))
    gateway.log_in("admin")
    gateway.post("/api/v1/models", {"name": "digits"})
    gateway.post("/api/v1/templates", {"name": "digits", "config": {"name": "x"}})
    gateway.post("/api/v1/workspaces", {"name": "lab"})
    viewed = {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": 1}
    gateway.post("/api/v1/users/activity", viewed)
    hook = {"url": "https://h/", "triggers": [{"condition": {"state": "ERROR"}}]}
    gateway.post("/api/v1/webhooks", hook)
    gateway.apply(
        webhooks.DeliveryDue(delivery_id="d", webhook_id=1, occasion="TEST", happened_at=1.0, reason="tested")
    )
    reading = [LogProgress("CONTROL", 9, 0, 0.0), LogProgress(SAVING, 9, 0, 0.0)]
    gateway.peers.progress = {"searcher": [ProcessProgress("ab12", True, reading)]}
    gateway.peers.values[queries.MetricNames] = {"validation": ["loss"]}
    return gateway


def shaped(spec):
    """Paths whose answer to GET has a shape of its own."""
    for path, operations in spec["paths"].items():
        answer = operations.get("get", {}).get("responses", {}).get("200", {})
        schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
        if "$ref" in schema:
            yield path, schema


def strict(spec):
    """The document with nothing allowed beside what a shape names."""
    for schema in spec["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return spec


def test_answers_have_the_shapes_that_the_document_says(filled):
    spec = strict(document(application(filled.backend)))
    paths = dict(shaped(spec))
    assert len(paths) >= 22
    for path, schema in paths.items():
        answer = filled.get(re.sub(r"{(\w+)}", lambda match: IDS[match[1]], path))
        # Or else its records would not be looked at.
        assert all(answer.values()), path
        jsonschema.Draft202012Validator(schema | {"components": spec["components"]}).validate(answer)

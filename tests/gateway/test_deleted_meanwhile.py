"""What is deleted while an answer about it is put together: the answer is one, or says that it is gone."""

import asyncio
import re

import pytest

from det_contracts import queries
from det_contracts.events import checkpoints, searcher
from det_contracts.problems import Problem, Refused
from services.gateway.http.server import application
from services.rest_routes.pages.openapi import document
from tests.gateway import stories as story

PLACES = {"checkpoint_uuid": "c-1", "uuid": "c-1", "id": "1", "kind": "experiment", "task_id": "1"}
FOLLOWS = ("live", "metrics-stream", "proxy", "logs", "time-series")
"""These last, or lead elsewhere."""
GONE = (
    checkpoints.ExperimentEmptied(1, True, ""),
    searcher.ExperimentDeleted(1, "DELETED", "deleted by ann", (1,)),
)


@pytest.fixture
def whole(gateway):
    """Experiment 1, which has all that answers tell of, and is deleted as soon as one of them waits."""
    gateway.log_in("admin")
    for query in queries.OWNER_OF:
        gateway.peers.values.setdefault(query, Refused(Problem("unavailable", "the service is away")))
    gateway.apply(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))
    gateway.apply(story.stored(1, "c-1", 10), story.validated(1, 10, 0.5))
    return gateway


def delete_while_it_waits(gateway, at):
    """Has experiment 1 gone by the end of the `at`-th wait; tells whether it came to that."""
    waited, catalogue = [], gateway.backend.catalogue
    query, read = gateway.peers.query, catalogue.read

    async def passing():
        waited.append(None)
        if len(waited) == at:
            await gateway.peers.append(*GONE)
            while 1 in catalogue.state.experiments:
                await asyncio.sleep(0)

    async def slow_query(question, **options):
        answer = await query(question, **options)
        await passing()
        return answer

    async def slow_read(statement, *arguments, **options):
        answer = await read(statement, *arguments, **options)
        await passing()
        return answer

    gateway.peers.query, catalogue.read = slow_query, slow_read
    return lambda: len(waited) >= at


def paths(gateway):
    operations = document(application(gateway.backend))["paths"].items()
    path_templates = [
        path for path, methods in operations if "get" in methods and not any(word in path for word in FOLLOWS)
    ]
    return [re.sub(r"{(\w+)(:path)?}", lambda m: PLACES.get(m[1], "1"), path) for path in path_templates]


@pytest.mark.parametrize("at", [1, 2])
def test_what_is_deleted_while_it_is_shown_is_no_failure(whole, at):
    query, read = whole.peers.query, whole.backend.catalogue.read
    failed, reached = {}, 0
    for path in paths(whole):
        whole.peers.query, whole.backend.catalogue.read = query, read
        if 1 not in whole.backend.catalogue.state.experiments:
            whole.apply(story.created(1), story.trial_created(1), *story.running(1))
            whole.apply(story.stored(1, "c-1", 10), story.validated(1, 10, 0.5))
        waits = delete_while_it_waits(whole, at)
        answer = whole.send("GET", path)
        reached += waits()
        if answer.status_code >= 500 and answer.status_code not in (501, 503):
            failed[path] = answer.text
    assert not failed
    assert reached > 5

"""Fixtures of a gateway without a network."""

from __future__ import annotations

import asyncio
import re

import pytest
import structlog
from argon2 import PasswordHasher

from det_contracts import queries, subjects
from det_contracts.events.searcher import ExperimentActivated, ExperimentCreated
from services.kit import passwords
from services.rest_requests import sign_in
from services.rest_routes.people import oidc
from services.web import pacing
from tests.fixtures.databases import on_each_database
from tests.fixtures.own_time import set_time
from tests.gateway import stories as story
from tests.gateway.harness import Harness
from tests.gateway.longest_turn import LongestTurn
from tests.gateway.talking import lines_of

COSTLY = {name: getattr(passwords, name) for name in ("_ARGON2", "_DUMMY_HASH")}


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks():
    """By itself structlog prints every variable of every frame: seconds, where one is an application."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.dev.ConsoleRenderer(colors=False)]
    )
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module", autouse=True)
def cheap_passwords():
    """Hashing takes little work here; `tests/kit/test_passwords.py` is about what it takes in use."""
    hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(COSTLY, (hasher, hasher.hash("x")), strict=True):
            patch.setattr(passwords, name, value)
        yield


@pytest.fixture
def costly_passwords(cheap_passwords, monkeypatch):
    """For a test that needs a password's check to take a while, or shows what is stored in use."""
    for name, value in COSTLY.items():
        monkeypatch.setattr(passwords, name, value)


database = on_each_database("gateway")


@pytest.fixture
def gateway(tmp_path):
    """A gateway that knows `determined`, with a log of nothing."""
    harness = Harness(tmp_path)
    harness.let_in()
    yield harness
    harness.close()


@pytest.fixture
def no_time_passes(monkeypatch):
    """For what counts by the second: no try comes back, however long the requests of a test take."""
    for module in (oidc, pacing, sign_in):
        set_time(monkeypatch, module, monotonic=lambda: 1000.0)


@pytest.fixture
def longest_turn(monkeypatch):
    """What the loop has spent most processor time on; `check` it at the end."""
    longest = LongestTurn(asyncio.Handle._run)
    monkeypatch.setattr(asyncio.Handle, "_run", lambda handle: longest.timed(handle))
    return longest


@pytest.fixture
def talking(gateway):
    """A running trial whose log is served as the metrics service would, from LOGS itself."""
    gateway.apply(story.created(1), story.trial_created(1), *story.running(1))
    gateway.stored_through = None

    def page(query):
        messages = gateway.journal.streams[subjects.LOGS]
        through = len(messages) if gateway.stored_through is None else gateway.stored_through
        lines = [line for stored in messages[:through] for line in lines_of(stored)]
        lines = [line for line in lines if line["task_id"] == query.task_id]
        wanted = [line for line in lines if line["id"] > query.after_id and query.text in line["text"]]
        wanted = [line for line in wanted if not query.levels or line["level"] in query.levels]
        wanted = [line for line in wanted if not query.regex or re.search(query.regex, line["text"])]
        if query.descending:
            wanted = [line for line in lines[::-1] if not query.after_id or line["id"] < query.after_id]
        shown = wanted[: query.limit] if query.limit else wanted
        cursor = shown[-1]["id"] if shown else query.after_id
        return {"lines": shown, "through": through, "more": len(shown) < len(wanted), "cursor": cursor}

    gateway.peers.values[queries.LogPage] = page
    return gateway


@pytest.fixture
def open_gateway(gateway):
    """A gateway whose searcher accepts everything."""

    async def accept(command):
        id = len(gateway.catalogue.state.experiments) + 1
        created = ExperimentCreated(
            experiment_id=id,
            user=command.user,
            config=command.config,
            original_config=command.original_config,
            context=command.context,
            parent_id=command.parent_id,
            source_checkpoint=command.source_checkpoint,
            reason="submitted",
        )
        await gateway.append(created)
        if command.activate:
            await gateway.append(ExperimentActivated(id, "submitted"))
        return id

    gateway.peers.on_command = accept
    return gateway

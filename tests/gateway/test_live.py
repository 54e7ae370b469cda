"""The gateway as a process, beside a real broker."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys

import httpx
import nats
import pytest

from det_contracts import queries, subjects
from services.gateway.http.server import listening_socket
from services.kit.bus import BusServer
from tests.gateway import stories as story
from tests.gateway.running import Running, eventually

pytestmark = pytest.mark.live


@pytest.fixture
def running(tmp_path):
    started = Running(tmp_path)
    yield started
    started.close()


def _run(work):
    return asyncio.run(work)


def _answers(running):
    paths = ("experiments", "experiments/1", "agents", "tasks", "workspaces")
    answers = [running.client.get(f"/api/v1/{path}") for path in paths]
    assert all(answer.status_code == 200 for answer in answers), [answer.text for answer in answers]
    bodies = [answer.json() for answer in answers]
    for name in ("duration", "runningTime", "slotHours"):
        bodies[0]["experiments"][0].pop(name)
        bodies[1]["experiment"].pop(name)
    return bodies


@pytest.mark.full
def test_a_lost_database_comes_back_from_the_log(running):
    running.start().log_in()
    _run(running.append(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1)))
    eventually(lambda: running.client.get("/tasks").json(), "the catalogue")
    before = _answers(running)
    assert running.stop() == 0
    for path in running.folder.glob("gateway.db*"):
        path.unlink()
    running.start()
    assert _answers(running) == before
    running.client.post("/api/v1/auth/logout")
    assert running.client.get("/api/v1/me").status_code == 401
    running.stop()
    running.start()
    assert running.client.get("/api/v1/me").status_code == 401


def test_a_reader_who_goes_away_frees_what_served_him(running):
    running.start().log_in()
    _run(running.append(story.created(1), story.trial_created(1)))
    eventually(lambda: running.client.get("/api/v1/experiments").json()["experiments"], "the experiment")

    async def serve_and_read():
        # A stand-in for the metrics service, which knows no line yet.
        client = await nats.connect(running.nats_url)

        async def page(query, stream, position):
            return 0, {"lines": [], "through": 0}

        await BusServer(client, "metrics").serve_queries({queries.LogPage: page})
        headers = dict(running.client.headers)
        async with httpx.AsyncClient(base_url=running.client.base_url, headers=headers) as reader:
            path = "/api/v1/trials/1/logs?follow=true"
            async with reader.stream("GET", path) as answer:
                assert answer.status_code == 200
                while running.consumers(subjects.LOGS) == 0:
                    await _tick()
        while running.consumers(subjects.LOGS):
            await _tick()
        await client.close()

    _run(serve_and_read())


async def _tick():
    await asyncio.sleep(0.02)


def test_stopping_cuts_streams_that_are_open(running):
    running.start().log_in()
    _run(running.append(story.created(1), story.trial_created(1)))
    eventually(lambda: running.client.get("/api/v1/experiments").json()["experiments"], "the experiment")
    with running.client.stream("GET", "/api/v1/trials/1/logs?follow=true") as answer:
        assert answer.status_code == 200
        assert running.stop() == 0


def test_without_the_other_services_commands_are_503(running, monkeypatch):
    running.start().log_in()
    answer = running.client.post("/api/v1/experiments/1/pause")
    assert answer.status_code == 503
    assert "searcher" in answer.json()["error"]["error"]


def test_connections_send_small_answers_at_once():
    listener = listening_socket("127.0.0.1", 0)
    listener.listen()
    with listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_in_use_is_one_clear_line():
    with listening_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            listening_socket("127.0.0.1", port)


def test_invalid_settings_are_reported(tmp_path):
    environment = os.environ | {"STEADFAST_PORT": "many"}
    command = [sys.executable, "-P", "-m", "services.gateway"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "STEADFAST_PORT='many'" in done.stderr

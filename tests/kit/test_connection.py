"""The connection to the broker, and what becomes of a process that has lost it for good."""

import asyncio
import dataclasses
import os
import signal
import subprocess

import pytest
from structlog.testing import capture_logs

from det_contracts.problems import Refused
from det_contracts.queries import LogPage
from services.checkpoints.app import SERVICE
from services.kit import conditions as names
from services.kit import connection as connection_module
from services.kit import host, process
from services.kit.broker import held_port, port_of
from services.kit.bus import BusClient, BusServer
from services.kit.connection import BrokerUnreachable, ConnectionClosed, close, connect
from services.kit.self_watch import SelfWatch
from tests.fixtures.own_time import set_time
from tests.fixtures.service_processes import run_module, start_service
from worker import app
from worker.control_groups import groups_of
from worker.identity import Identity
from worker.settings import WorkerSettings

pytestmark = [pytest.mark.live, pytest.mark.timeout(200)]


@pytest.fixture
def settings(broker, tmp_path):
    path = tmp_path / "checkpoints.creds"
    path.write_text(broker.authority.operator())
    database = f"sqlite:///{tmp_path}/checkpoints.db"
    return SERVICE.settings(nats_url=broker.url, nats_credentials=path, database_url=database)


async def shown_the_door(connection):
    """Say what the broker answers by ending the conversation; its client does not come back from that.

    It is said again on each connection: where more was sent meanwhile, the system may throw the answer away
    with the connection, and the client makes another one.
    """
    garbled = None
    async with asyncio.timeout(60):
        while not connection.is_closed:
            if connection.is_connected and connection._transport is not garbled:
                garbled = connection._transport
                garbled.write(b"NONSENSE\r\n")
            await asyncio.sleep(0.01)


def test_a_service_that_the_broker_shuts_out_ends_and_says_why(settings, monkeypatch):
    made = []

    async def recording_connect(*arguments, **options):
        made.append(await connect(*arguments, **options))
        return made[-1]

    async def work():
        serving = asyncio.ensure_future(host.serve(SERVICE, settings, None))
        async with asyncio.timeout(60):
            # It answers queries: all that it is made of runs.
            while not made or len(made[0]._subs) < 4:
                await asyncio.sleep(0.01)
            await shown_the_door(made[0])
            with pytest.raises((ExceptionGroup, ConnectionClosed)) as failure:
                await serving
        return failure.value

    monkeypatch.setattr(host, "connect", recording_connect)
    # Whoever notices, and however many do.
    for error in process.flatten_errors(asyncio.run(work())):
        assert isinstance(error, ConnectionClosed)
        assert "unknown protocol operation" in str(error).lower()


@pytest.fixture
def nowhere():
    """An address that belongs to nobody, with a password."""
    held = held_port()
    yield f"nats://ann:hush@127.0.0.1:{port_of(held)}"
    held.close()


def test_who_waits_for_the_broker_says_why_and_how_often_and_gives_up_when_asked_to(settings, nowhere):
    wrong = dataclasses.replace(settings, nats_url=f"{nowhere},{nowhere}", nats_credentials=None)
    with capture_logs() as lines, pytest.raises(BrokerUnreachable) as failure:
        asyncio.run(connect(wrong, "test", patience_s=1))
    address = nowhere.replace("ann:hush@", "")
    assert f"the broker at {address},{address} could not be reached within 1 s" in str(failure.value)
    assert "the last error was: [Errno 111]" in str(failure.value)
    assert "hush" not in f"{failure.value}{lines}"
    assert (lines[0]["failures"], lines[0]["broker"]) == (1, f"{address},{address}")


def test_the_same_error_of_a_connection_is_logged_now_and_then_with_its_number(monkeypatch):
    now = [0.0]
    set_time(monkeypatch, connection_module, monotonic=lambda: now[0])
    attempts = connection_module._Attempts("nats://a:4222")

    async def fail(text, times):
        for _ in range(times):
            await attempts.on_error(OSError(text))

    with capture_logs() as lines:
        asyncio.run(fail("refused", 100))
        now[0] += connection_module.REPEAT_ERROR_S
        asyncio.run(fail("refused", 100))
        asyncio.run(fail("no route", 2))
    assert [(line["error"], line["failures"]) for line in lines] == [
        ("refused", 1),
        ("refused", 101),
        ("no route", 201),
    ]


def test_a_worker_with_a_wrong_address_ends_and_says_so(nowhere, tmp_path):
    done = run_module(
        "worker",
        env=os.environ
        | {
            "STEADFAST_NATS_URL": nowhere,
            "STEADFAST_WORKER_HOME": str(tmp_path),
            "STEADFAST_WORKER_GPU": "false",
            "STEADFAST_WORKER_BROKER_WAIT_S": "1",
        },
    )
    assert done.returncode == 1
    assert "could not be reached within 1 s" in done.stdout + done.stderr
    assert "Check STEADFAST_NATS_URL" in done.stdout + done.stderr


def test_a_worker_that_the_broker_shuts_out_ends(broker, settings, tmp_path, monkeypatch):
    path = tmp_path / "worker.creds"
    path.write_text(broker.authority.worker("w"))
    mine = WorkerSettings(
        nats_url=broker.url,
        nats_credentials=path,
        worker_id="w",
        worker_home=tmp_path / "home",
        worker_slots=1,
        worker_gpu=False,
        worker_address="10.0.0.1",
        blobs=str(tmp_path / "blobs"),
    )

    class Left(BaseException):
        pass

    def left(status):
        raise Left(status)

    telling, connections = [], []

    async def later(connection):
        await asyncio.sleep(0.1)
        await shown_the_door(connection)

    async def connect_briefly(*arguments, **options):
        connection = await connect(*arguments, **options)
        connections.append(connection)
        telling.append(asyncio.ensure_future(later(connection)))
        return connection

    async def work():
        service = await connect(settings, "tests")
        await host.ensure_streams(service.jetstream())
        try:
            async with asyncio.timeout(60):
                await app._run(mine, Identity("w", "folder-of-w"), None, groups_of(mine, "folder-of-w"))
        finally:
            # Also those of the worker, which would have ended with its process.
            for connection in [service, *connections]:
                await close(connection)

    monkeypatch.setattr(app, "connect", connect_briefly)
    monkeypatch.setattr(app.process, "exit_now", left)
    with pytest.raises(Left, match="1"), capture_logs() as lines:
        asyncio.run(work())
    assert (
        "unknown protocol operation"
        in next(e for e in lines if e["event"] == "worker.failed")["error"].lower()
    )


def test_what_is_too_large_for_the_broker_is_said_at_once(settings):
    async def page(query, stream, position):
        return 0, "x" * 9_000_000

    async def work():
        connection = await connect(settings, "tests")
        await BusServer(connection, "metrics").serve_queries({LogPage: page})
        bus_client = BusClient(connection)
        with pytest.raises(Refused, match=r"the answer is too large: 9,000,\d+ bytes; ask for less"):
            await bus_client.query(LogPage(task_id="1.t"))
        with pytest.raises(Refused, match=r"the request is too large: 9,000,\d+ bytes"):
            await bus_client.query(LogPage(task_id="x" * 9_000_000))
        await close(connection)

    asyncio.run(work())


def test_a_service_waits_for_its_database_and_says_so(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(host, "DATABASE_RETRY_S", 0.05)
    later = dataclasses.replace(settings, database_url=f"sqlite:///{tmp_path}/later/checkpoints.db")
    watched = []

    class Kept(SelfWatch):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            watched.append(self.conditions)

    monkeypatch.setattr(host, "SelfWatch", Kept)

    async def until(expected):
        while {trouble.condition for trouble in watched[0].current()} != expected:
            await asyncio.sleep(0.01)

    async def work():
        serving = asyncio.ensure_future(host.serve(SERVICE, later, None))
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
            await until({names.STARTING, names.DATABASE_FAILS})
            (reason,) = [
                trouble for trouble in watched[0].current() if trouble.condition == names.DATABASE_FAILS
            ]
            assert "unable to open database file" in reason.line()
            (tmp_path / "later").mkdir()
            # Alone it leads itself, and nobody the others.
            await until({names.NOBODY_LEADS})
            assert "checkpoints" not in {trouble.about for trouble in watched[0].current()}
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(work())


def test_a_service_stops_though_the_broker_does_not_answer(broker, settings):
    environment = os.environ | {
        "STEADFAST_NATS_URL": broker.url,
        "STEADFAST_NATS_CREDENTIALS": str(settings.nats_credentials),
        "STEADFAST_DATABASE_URL": settings.database_url,
    }
    service = start_service("services.checkpoints", env=environment, stderr=subprocess.PIPE)
    try:
        for line in service.stderr:
            if b"service.leads" in line:
                break
        broker._process.send_signal(signal.SIGSTOP)
        service.terminate()
        assert service.wait(30) == 0
    finally:
        broker._process.send_signal(signal.SIGCONT)
        service.kill()
        service.wait()
        service.stderr.close()

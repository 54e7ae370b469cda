"""The supervisor starts the broker again when that helps, and only then."""

import asyncio
import contextlib
import http.server
import json
import threading
from types import SimpleNamespace

import pytest

from services.kit import disk_space
from services.kit.broker import held_port, port_of
from services.local import broker_recovery
from services.local.broker_recovery import MIN_FREE_BYTES, BrokerRecovery, write_error

LATCHED = "JetStream stream 'A > CONTROL' write error: write 1.blk: no space left on device"


@pytest.fixture
def broker():
    """The page of a broker that says what a test wants it to say."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = page.answer
            self.send_response(status)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    page = SimpleNamespace(port=server.server_address[1], answer=(200, b'{"status": "ok"}'))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield page
    server.shutdown()
    thread.join()
    server.server_close()


def sick(words=LATCHED):
    return 503, json.dumps({"status": "unavailable", "error": words}).encode()


@pytest.fixture
def disk(monkeypatch):
    made = SimpleNamespace(free=MIN_FREE_BYTES)
    filesystem = SimpleNamespace(f_frsize=1, f_blocks=1 << 40)
    monkeypatch.setattr(
        disk_space.os, "statvfs", lambda _: SimpleNamespace(**vars(filesystem), f_bavail=made.free)
    )
    return made


@pytest.fixture
def quick(monkeypatch):
    """Looks without pauses; returns the pauses that were made after new starts."""
    pauses = []
    monkeypatch.setattr(broker_recovery, "POLL_EVERY_S", 0.001)
    monkeypatch.setattr(broker_recovery, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(broker_recovery, "MAX_PAUSE_S", 0.004)
    return pauses


def test_what_a_broker_says_of_itself(broker):
    assert write_error(broker.port) == ""
    broker.answer = sick()
    assert write_error(broker.port) == LATCHED
    for other in (sick("JetStream stream 'A > CONTROL' is not current"), (503, b"<html>"), (500, b"[]")):
        broker.answer = other
        assert write_error(broker.port) == ""


def test_of_a_broker_that_is_away_nothing_is_known():
    with held_port() as held:
        assert write_error(port_of(held)) == ""


def run(broker, story, store):
    """Have a broker cared for while `story` runs; it is given the list of new starts, which grows."""
    starts = []

    async def all_of_it():
        changed = asyncio.Condition()

        async def restart():
            async with changed:
                starts.append(broker.answer)
                changed.notify_all()

        async def restarted(times):
            async with asyncio.timeout(60), changed:
                await changed.wait_for(lambda: len(starts) >= times)

        keeping = asyncio.create_task(BrokerRecovery(restart, broker.port, store).run())
        await story(restarted)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    asyncio.run(all_of_it())
    return starts


def test_it_is_started_again_once_there_is_room(broker, disk, quick, tmp_path, capsys):
    async def until_printed(text):
        printed = ""
        async with asyncio.timeout(60):
            while text not in printed:
                printed += capsys.readouterr().err
                await asyncio.sleep(0.001)
        return printed

    async def story(restarted):
        broker.answer, disk.free = sick(), MIN_FREE_BYTES - 1
        printed = await until_printed("it restarts once there are 32 MiB")
        assert LATCHED in printed
        disk.free = MIN_FREE_BYTES
        await restarted(1)
        broker.answer = 200, b"{}"
        await until_printed("it is restarted")

    starts = run(broker, story, tmp_path)
    assert starts[0] == sick()


def test_an_unhealthy_broker_is_restarted_with_longer_pauses(broker, disk, quick, tmp_path):
    care = []

    async def story(restarted):
        broker.answer = sick()
        await restarted(5)

    class Watched(BrokerRecovery):
        def __init__(self, *args):
            super().__init__(*args)
            care.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "BrokerRecovery", Watched)
        starts = run(broker, story, tmp_path)
    assert len(starts) >= 5
    assert care[0]._pause_s == broker_recovery.MAX_PAUSE_S


def test_one_that_is_well_is_left_alone(broker, disk, quick, tmp_path):
    all_sent = asyncio.Event()

    async def story(_):
        for answer in ((200, b"{}"), sick("not current"), (200, b"{}")):
            broker.answer = answer
            for _ in range(20):
                await asyncio.to_thread(write_error, broker.port)
        all_sent.set()

    assert run(broker, story, tmp_path) == []
    assert all_sent.is_set()

"""The connection that comes back by itself."""

import asyncio
import json
import queue
from types import SimpleNamespace

import pytest
from nats.errors import ConnectionClosedError

from determined.transport import bus_thread
from determined.transport.bus_thread import BusThread
from services.kit.credentials import trial_inbox


class Client:
    """A connection to a broker that stores everything, until it is closed."""

    max_payload = 8192

    def __init__(self):
        self.is_closed = False
        self.stored = []

    async def request(self, subject, body, **options):
        if self.is_closed:
            raise ConnectionClosedError
        self.stored.append(body)
        return SimpleNamespace(data=json.dumps({"seq": 1}).encode())

    async def close(self):
        self.is_closed = True


class Thread(BusThread):
    """A thread whose connections the test sees; the first attempts may fail."""

    def __init__(self, *failures):
        super().__init__([], None, "_INBOX")
        self.failures = list(failures)
        self.clients = []

    async def _connect(self):
        if self.failures:
            raise self.failures.pop()
        self.clients.append(Client())
        return self.clients[-1]

    def send(self, body):
        return self.submit(self.store("reports.1", body, "id")).result(20)


@pytest.fixture
def started():
    made = []

    def start(*failures):
        made.append(Thread(*failures))
        made[0].start()
        return made[0]

    yield start
    made[0].stop()


def test_a_connection_that_was_closed_for_good_is_made_anew(started):
    thread = started()
    thread.send(b"one")
    thread.clients[0].is_closed = True
    thread.send(b"two")
    assert [client.stored for client in thread.clients] == [[b"one"], [b"two"]]


def test_a_connection_that_could_not_be_made_is_tried_again(started):
    # The first attempt is the thread's own, and nobody waits for it.
    thread = started(*[ValueError("what is in the credentials makes no sense")] * 2)
    with pytest.raises(ValueError, match="no sense"):
        thread.send(b"one")
    thread.send(b"two")
    assert [client.stored for client in thread.clients] == [[b"two"]]


def test_what_was_closed_by_leaving_is_not_made_anew(started):
    thread = started()
    thread.send(b"one")
    thread.stop()
    assert len(thread.clients) == 1
    with pytest.raises(RuntimeError, match="does not run in this process"):
        thread.send(b"two")


@pytest.mark.live
@pytest.mark.timeout(200)
def test_waiters_ask_again_when_the_broker_is_back(broker, tmp_path):
    path = tmp_path / "trial.creds"
    path.write_text(broker.trial_credentials(12))
    questions, answers = queue.SimpleQueue(), []

    async def answering():
        service = await broker.connect()

        async def on(message):
            questions.put(message.data)
            if answers:
                await message.respond(answers.pop())

        await service.subscribe("ask.trial.*.searcher.news", queue="searcher", cb=on)
        await service.flush()
        return service

    async def story(thread):
        service = await answering()
        thread.start()
        # So long that no waiting by the clock could end it.
        waiting = thread.submit(
            thread.wait_for_news("ask.trial.12.searcher.news", b"1", 1000.0, lambda: False)
        )
        await asyncio.to_thread(questions.get, timeout=60)
        broker.kill9()
        broker.start()
        assert await asyncio.to_thread(waiting.result, 20) is None
        answers.append(b"news")
        again = thread.submit(thread.wait_for_news("ask.trial.12.searcher.news", b"2", 1000.0, lambda: False))
        assert await asyncio.to_thread(again.result, 20) == b"news"
        await service.close()

    thread = BusThread([broker.url], str(path), trial_inbox(12))
    try:
        asyncio.run(story(thread))
    finally:
        thread.stop()


def test_who_is_in_a_hurry_asks_anew(monkeypatch):
    monkeypatch.setattr(bus_thread, "HURRY_S", 0.01)
    thread = Thread()
    thread.start()

    async def never(*_, **__):
        await asyncio.Event().wait()

    monkeypatch.setattr(Client, "request", never)
    try:
        news = thread.submit(thread.wait_for_news("ask.trial.1.searcher.news", b"", 1000.0, lambda: True))
        assert news.result(20) is None
    finally:
        thread.stop()

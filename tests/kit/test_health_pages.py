"""The pages for those who look after a process."""

import asyncio
import socket
import threading
import urllib.error
import urllib.request

import pytest

from det_contracts.envelope import Recorded
from services.kit import conditions as names
from services.kit import health
from services.kit.conditions import KINDS, Conditions
from services.kit.health import HealthPages, deduplicate
from services.kit.log import Stored
from services.kit.process_metrics import Measures
from services.kit.self_watch import SelfWatch
from services.kit.settings import ServiceSettings


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def conditions():
    return Conditions("searcher", clock=lambda: 0.0)


def on_pages(conditions, work, measures=None):
    """Run `work` with a function that gets a page while the loop is free."""

    async def run():
        pages = HealthPages(conditions, measures or Measures("searcher"))
        port = pages.start(0)
        try:
            return await work(lambda path: asyncio.to_thread(get, port, path), port)
        finally:
            pages.stop()

    return asyncio.run(run())


def test_a_service_runs_where_its_pages_cannot_be_shown(conditions):
    async def work(page, port):
        with SelfWatch("searcher", ServiceSettings(health_port=port), Measures("searcher")).serve_pages():
            return await page("/healthz")

    assert on_pages(conditions, work) == (200, "ok\n")


def test_what_cannot_be_read_is_an_error_and_not_silence(conditions):
    def failing():
        raise ValueError("no such number")

    measures = Measures("searcher")
    measures.register(failing)
    status, text = on_pages(conditions, lambda page, _: page("/metrics"), measures)
    assert (status, "no such number" in text) == (500, True)


def test_a_process_that_begins_is_not_ready_at_its_first_answer(monkeypatch):
    watch = SelfWatch("searcher", ServiceSettings(health_port=1), Measures("searcher"))
    first = []
    monkeypatch.setattr(watch.pages, "start", lambda *_: first.append(watch.pages.page("/readyz")))
    with watch.serve_pages():
        (status, text), *_ = first
    assert (status[:3], b"waiting for the broker" in text) == ("503", True)


def test_the_numbers(conditions):
    measures = Measures("searcher")
    messages = [Stored("control.any", position, b"") for position in (7, 8, 9)]
    measures.folded("CONTROL", messages, [Recorded(8, None, "", "", 0.0)], 0.1)
    measures.decided(2, 0.1)
    measures.refused()
    measures.skipped("future.thing")
    conditions.set_condition(names.NOBODY_LEADS, {"scheduler": "nobody decides for the scheduler"})
    status, text = on_pages(conditions, lambda page, _: page("/metrics"), measures)
    assert status == 200
    assert 'steadfast_events_folded_total{owner="searcher",stream="CONTROL"} 3.0' in text
    assert 'steadfast_log_position{owner="searcher",stream="CONTROL"} 9.0' in text
    assert 'steadfast_condition{about="scheduler",condition="nobody_leads",owner="searcher"} 1.0' in text
    for condition in KINDS:
        assert f'steadfast_condition{{about="",condition="{condition}",owner="searcher"}} 0.0' in text
    assert text.count("# TYPE steadfast_condition gauge") == 1


@pytest.mark.parametrize("condition", KINDS)
def test_each_condition_is_shown_with_its_time_and_what_to_do(conditions, condition):
    conditions.set_condition(condition, {"CONTROL": "something of CONTROL is wrong"})

    async def work(page, _):
        return [await page(path) for path in ("/healthz", "/readyz", "/livez", "/else")]

    health_page, ready, alive, nothing = on_pages(conditions, work)
    assert health_page == (503, f"{condition}: something of CONTROL is wrong, since 1970-01-01T00:00:00Z. "
                         f"{KINDS[condition].action}\n")  # fmt: skip
    assert ready == ((200, "ok\n") if KINDS[condition].serves_requests else health_page)
    assert alive == (200, "ok\n")
    assert nothing[0] == 404


def test_readiness_of_the_gateway_does_not_depend_on_broker_or_services():
    assert {name for name, kind in KINDS.items() if kind.serves_requests} == {
        names.BROKER_AWAY, names.NOBODY_LEADS, names.REPLICA_BEHIND, names.STREAM_REFUSES,
        names.DECISIONS_PARKED, names.DECISIONS_STAND_STILL, names.DISK_LOW, names.ARCHIVE_FAILS,
        names.COPY_FAILS, names.ENGINE_AWAY, names.REBUILD_REFUSED,
    }  # fmt: skip


def test_they_answer_while_the_event_loop_stands_still(conditions, monkeypatch):
    monkeypatch.setattr(health, "METRICS_S", 0.05)
    conditions.set_condition(names.LOOP_BLOCKED, {"": "the event loop stands still"})
    answers = []

    async def work(page, port):
        def ask():
            answers.extend(get(port, path) for path in ("/healthz", "/livez", "/metrics"))

        asking = threading.Thread(target=ask)
        asking.start()
        # Without an await: the loop does nothing else before all has been answered.
        asking.join(60)

    on_pages(conditions, work)
    (status, health_page), alive, (_, numbers) = answers
    assert (status, health_page.startswith("loop_blocked: the event loop stands still")) == (503, True)
    assert alive == (200, "ok\n")
    assert 'condition="loop_blocked",owner="searcher"} 1.0' in numbers


def test_who_hangs_up_or_says_nothing_is_in_nobodys_way(conditions, monkeypatch):
    monkeypatch.setattr(health, "REQUEST_S", 0.05)

    async def work(page, port):
        for request in (b"", b"GET", b"GET /healthz HTTP/1.1\r\n", b"\xff\r\n\r\n", b"x" * 20_000):
            for _ in range(health.MAX_REQUESTS):
                with socket.create_connection(("127.0.0.1", port)) as connection:
                    connection.sendall(request)
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(2 * health.MAX_REQUESTS)]
        try:
            while True:
                try:
                    return await page("/healthz")
                except OSError:
                    # Turned away while too many ask at once.
                    await asyncio.sleep(0.01)
        finally:
            for connection in silent:
                connection.close()

    assert on_pages(conditions, work) == (200, "ok\n")


def test_whoever_keeps_all_places_without_asking_hides_no_page(conditions, monkeypatch):
    """An orchestrator that gets no answer starts a service again, or takes it away from its clients."""
    monkeypatch.setattr(health, "REQUEST_S", 60.0)

    async def work(page, port):
        silent = []
        for began in (b"", b"GET /heal", b"\x16\x03"):
            for _ in range(health.MAX_REQUESTS):
                silent.append(socket.create_connection(("127.0.0.1", port)))
                silent[-1].sendall(began)
        try:
            async with asyncio.timeout(20):
                while True:
                    try:
                        return await page("/healthz")
                    except OSError:
                        await asyncio.sleep(0.05)
        finally:
            for connection in silent:
                connection.close()

    assert on_pages(conditions, work) == (200, "ok\n")


def test_shared_conditions_are_shown_once_and_own_ones_for_each_process():
    clock = [2.0]
    mine, other = Conditions("gateway", lambda: clock[0]), Conditions("metrics", lambda: clock[0])
    for process_conditions in (mine, other):
        process_conditions.set_condition(names.NOBODY_LEADS, {"searcher": "nobody decides for the searcher"})
        clock[0] -= 1.0
        process_conditions.set_condition(names.LOG_LAGS, {"CONTROL": "CONTROL is not read"})
    shown = {
        (trouble.condition, trouble.program, trouble.since)
        for trouble in deduplicate(mine.current() + other.current())
    }
    assert shown == {
        ("nobody_leads", "metrics", 1.0),
        ("log_lags", "gateway", 1.0),
        ("log_lags", "metrics", 0.0),
    }

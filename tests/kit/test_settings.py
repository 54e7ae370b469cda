"""Settings from the environment, and the pages for those who look after a service."""

import asyncio
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from det_contracts.envelope import Recorded
from services.kit.health import HealthServer, show
from services.kit.measures import Measures
from services.kit.settings import BadSettings, ServiceSettings, load


@dataclass(frozen=True)
class Mine(ServiceSettings):
    must: str = ""
    count: int = 1
    share: float | None = None
    on: bool = False
    place: Path | None = None


@dataclass(frozen=True)
class Needed:
    this: str
    that: int


def test_values_take_the_types_of_their_fields():
    environment = {
        "STEADFAST_COUNT": "7",
        "STEADFAST_SHARE": "0.5",
        "STEADFAST_ON": "yes",
        "STEADFAST_PLACE": "/x",
    }
    found = load(Mine, environment)
    assert (found.count, found.share, found.on, found.place) == (7, 0.5, True, Path("/x"))
    assert found.nats_url == "nats://127.0.0.1:4222"


def test_an_empty_variable_counts_as_absent():
    assert load(Mine, {"STEADFAST_COUNT": ""}).count == 1


def test_all_problems_are_told_at_once():
    with pytest.raises(BadSettings) as told:
        load(Mine, {"STEADFAST_COUNT": "many", "STEADFAST_ON": "perhaps", "STEADFAST_HEALTH_PORT": "x"})
    for variable in ("STEADFAST_COUNT='many'", "STEADFAST_ON='perhaps'", "STEADFAST_HEALTH_PORT='x'"):
        assert variable in str(told.value)
    with pytest.raises(BadSettings) as told:
        load(Needed, {})
    assert "STEADFAST_THIS is not set" in str(told.value)
    assert "STEADFAST_THAT is not set" in str(told.value)


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_service_runs_where_its_pages_cannot_be_shown():
    async def work():
        measures = Measures("searcher")
        first = HealthServer(lambda: None, measures.text)
        port = await first.start(0)
        hide = await show(measures, ServiceSettings(health_port=port), lambda: None)
        await hide()
        assert await asyncio.to_thread(get, port, "/healthz") == (200, "ok\n")
        await first.stop()

    asyncio.run(work())


def test_what_cannot_be_read_is_an_error_and_not_silence():
    def failing():
        raise ValueError("no such number")

    async def work():
        measures = Measures("searcher")
        measures.read(failing)
        server = HealthServer(lambda: None, measures.text)
        port = await server.start(0)
        status, text = await asyncio.to_thread(get, port, "/metrics")
        assert (status, "no such number" in text) == (500, True)
        await server.stop()

    asyncio.run(work())


def test_health_and_metrics_pages():
    async def work():
        wrong = None
        measures = Measures("searcher")
        measures.folded("CONTROL", [Recorded(position, None, "", "", 0.0) for position in (7, 8, 9)], 0.1)
        measures.decided(2, 0.1)
        measures.refused()
        measures.skipped("future.thing")
        server = HealthServer(lambda: wrong, measures.text)
        port = await server.start(0)
        assert await asyncio.to_thread(get, port, "/healthz") == (200, "ok\n")
        wrong = "still folding the log"
        assert await asyncio.to_thread(get, port, "/healthz") == (503, "still folding the log\n")
        status, text = await asyncio.to_thread(get, port, "/metrics")
        assert status == 200
        assert 'steadfast_events_folded_total{owner="searcher",stream="CONTROL"} 3.0' in text
        assert 'steadfast_log_position{owner="searcher",stream="CONTROL"} 9.0' in text
        assert (await asyncio.to_thread(get, port, "/else"))[0] == 404
        await server.stop()

    asyncio.run(work())

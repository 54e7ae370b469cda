"""A cluster that was started to end with another process does so, however that process ends."""

import asyncio
import subprocess
import sys

import pytest

from services.local.home import Home, Plan
from services.local.supervisor import Cluster, call_when_ended


def sleeping():
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


async def heard_of(pid, then=lambda: None):
    """Wait until the end of a process is noticed."""
    noticed = asyncio.Event()
    with call_when_ended(pid, noticed.set):
        assert not noticed.is_set()
        then()
        async with asyncio.timeout(60):
            await noticed.wait()


def test_a_process_that_is_killed_is_noticed():
    with sleeping() as watched:
        asyncio.run(heard_of(watched.pid, watched.kill))


def test_an_ended_process_is_noticed_at_once():
    with sleeping() as watched:
        watched.kill()

    async def heard():
        noticed = asyncio.Event()
        with call_when_ended(watched.pid, noticed.set):
            assert noticed.is_set()

    asyncio.run(heard())


def test_none_is_watched_without_a_number():
    async def unheard():
        with call_when_ended(0, lambda: 1 / 0):
            await asyncio.sleep(0)

    asyncio.run(unheard())


@pytest.mark.parametrize(("wanted", "further"), [("1", 0), ("2", 1), ("3", 2), ("0", 0), ("x", 0)])
def test_each_metrics_process_has_its_number_credentials_and_database(tmp_path, wanted, further):
    plan = Plan(name="test", settings={"STEADFAST_METRICS_SHARDS": wanted})
    programs = {planned.name: planned for planned in Cluster(plan, Home("test", tmp_path)).programs()}
    names = [name for name in programs if name.startswith("metrics")]
    assert names == ["metrics", "metrics-2", "metrics-3"][: 1 + further]
    for number, name in enumerate(names, 1):
        program = programs[name]
        assert program.command[-1] == "services.metrics"
        assert program.environment["STEADFAST_METRICS_SHARDS"] == wanted
        assert program.environment.get("STEADFAST_METRICS_SHARD", "1") == str(number)
        assert program.environment["STEADFAST_NATS_CREDENTIALS"].endswith(f"/{name}.creds")
        assert program.environment["STEADFAST_DATABASE_URL"].endswith(f"/{name}.db")
    assert len({programs[name].environment["STEADFAST_HEALTH_PORT"] for name in names}) == len(names)

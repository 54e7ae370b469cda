"""Each process tells how far it has read the log; who does not run is told as silent, at once."""

import asyncio
import contextlib

import msgspec
import pytest

from det_contracts import subjects
from services.kit.log_progress import LogProgress, ProcessProgress, fetch_log_progress, serve_log_progress
from tests.fixtures.broker import broker as broker

OWNERS = ("gateway", "searcher", "metrics")
pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
READING = LogProgress("CONTROL", 7, 5, 1.5)


@contextlib.asynccontextmanager
async def connected(broker, who):
    connection = await broker.connect(broker.authority.service(who))
    try:
        yield connection
    finally:
        await connection.close()


def report(replica, *, leads):
    return ProcessProgress(replica, leads, [READING])


async def fetched(connection, until):
    """On a busy machine the answers of some replicas come too late for one request."""
    async with asyncio.timeout(60):
        while not until(progress := await fetch_log_progress(connection, OWNERS)):
            pass
    return progress


def test_each_replica_answers_and_the_leader_comes_first(broker):
    async def work():
        async with connected(broker, "gateway") as gateway, connected(broker, "searcher") as searcher:
            await serve_log_progress(gateway, "gateway", lambda: report("a", leads=False))
            await serve_log_progress(gateway, "gateway", lambda: report("b", leads=True))
            await serve_log_progress(searcher, "searcher", lambda: report("c", leads=True))
            await gateway.flush()
            await searcher.flush()
            progress = await fetched(
                gateway, lambda progress: len(progress["gateway"]) == 2 and progress["searcher"]
            )
            assert progress["gateway"] == [report("b", leads=True), report("a", leads=False)]
            assert progress["searcher"] == [report("c", leads=True)]
            assert progress["metrics"] == []

    asyncio.run(work())


def test_an_answer_that_cannot_be_read_hides_no_other_service(broker):
    async def work():
        async with (
            connected(broker, "gateway") as gateway,
            connected(broker, "metrics") as metrics,
            connected(broker, "searcher") as searcher,
        ):

            async def nonsense(message):
                await metrics.publish(message.reply, b"[1]")

            await metrics.subscribe(subjects.log_progress("metrics"), cb=nonsense)
            await serve_log_progress(searcher, "searcher", lambda: report("c", leads=True))
            await metrics.flush()
            await searcher.flush()
            progress = await fetched(gateway, lambda progress: progress["searcher"])
            assert progress == {"gateway": [], "searcher": [report("c", leads=True)], "metrics": []}

    asyncio.run(work())


def test_its_words_on_the_bus_are_stable():
    assert msgspec.json.decode(msgspec.json.encode(report("a", leads=True))) == {
        "replica": "a",
        "leads": True,
        "progress": [{"name": "CONTROL", "position": 7, "behind": 5, "late_s": 1.5}],
    }

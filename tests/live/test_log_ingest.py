"""The metrics service is killed again and again while workers ship output: every line is there, once."""

import asyncio
import contextlib
import threading

import msgspec
import nats
import pytest

from det_contracts.queries import LogFields, LogPage
from services.kit.bus import BusClient
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from tests.fixtures.lines import as_stored
from tests.fixtures.metrics_service import answer_to
from tests.fixtures.metrics_service import credentials as credentials
from tests.fixtures.metrics_service import metrics as metrics
from worker.log_shipping import Shipper
from worker.output_spool import SpoolReader
from worker.shim.spool import STDOUT, Spool

pytestmark = pytest.mark.timeout(900)
LINES = 60_000
TASKS = ("1.a", "1.b")
KILLS = 6


class Intake(JetStreamLog):
    """Takes what the worker says."""

    async def append(self, draft):
        return await super().append(as_stored(draft))


def write(folder, done):
    """What a run prints, by and by, a few lines at a time."""
    (folder / "spool").mkdir(parents=True)
    spool = Spool(str(folder / "spool"))
    for start in range(0, LINES, 7):
        spool.append(STDOUT, [b"line %d" % n for n in range(start, min(start + 7, LINES))])
    done.set()


async def every_line(bus_client, query):
    lines = []
    while True:
        page = await answer_to(bus_client, query)
        lines += page["lines"]
        if not page["more"]:
            return lines
        query = msgspec.structs.replace(query, after_id=page["cursor"])


async def stored(bus_client, task):
    return (await answer_to(bus_client, LogFields(task)))["lines"]


@pytest.mark.full
def test_no_line_is_missing_or_doubled(metrics, broker, credentials, tmp_path):
    asyncio.run(_with_kills(metrics, broker.url, credentials, tmp_path))


async def _with_kills(metrics, url, credentials, folder):
    client = await nats.connect(url, user_credentials=str(credentials))
    await ensure_streams(client.jetstream())
    bus_client, journal = BusClient(client), Intake(client)
    shipping = []
    for task in TASKS:
        written = threading.Event()
        threading.Thread(target=write, args=(folder / task, written), daemon=True).start()
        await asyncio.to_thread((folder / task / "spool").parent.mkdir, exist_ok=True, parents=True)
        shipping.append(asyncio.create_task(ship(journal, task, folder / task, written)))
    for _ in range(KILLS):
        before = await stored(bus_client, TASKS[0])
        while (now := await stored(bus_client, TASKS[0])) == before and now < LINES:
            await asyncio.sleep(0)
        metrics.kill()
        metrics.start()
    await asyncio.gather(*shipping)
    for task in TASKS:
        while await stored(bus_client, task) < LINES:
            await asyncio.sleep(0.05)
        lines = await every_line(bus_client, LogPage(task_id=task, limit=0))
        assert [line["text"] for line in lines] == [f"line {n}" for n in range(LINES)]
        assert [line["number"] for line in lines] == list(range(1, LINES + 1))
        backwards = await every_line(bus_client, LogPage(task_id=task, limit=0, descending=True))
        assert backwards == lines[::-1]
        (match,) = await every_line(bus_client, LogPage(task_id=task, text="line 54321"))
        assert match["number"] == 54322
    await client.close()


async def ship(journal, task, folder, written):
    """What a worker does, that dies and is replaced after every few batches."""
    ended = asyncio.Event()
    while not ended.is_set():
        if await asyncio.to_thread(written.wait, 0.3):
            ended.set()
        shipper = Shipper(journal, task, f"{task}.1", "w1")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if ended.is_set() else 0.5):
                await shipper.ship(SpoolReader(folder), ended)

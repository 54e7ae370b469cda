"""A metrics process copies its database to a bucket, and continues from there when all else is lost."""

import asyncio
import contextlib
import sqlite3
import uuid

import msgspec
import nats
import pytest

from det_contracts import codec, subjects
from det_contracts.events.gateway import RebuildFromCopyAsked
from det_contracts.queries import LogPage, Reports, TrialSummaries
from services.kit.bus import BusClient
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.metrics.copies.copier import newest_copy
from services.metrics.copies.store import store_of
from services.metrics.settings import MetricsSettings
from tests.fixtures.metrics_service import Metrics, answer_to
from tests.fixtures.metrics_service import credentials as credentials
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server
from tests.metrics.world import lines, reports, training, validation

SECONDS = 1 / 3600
QUERIES = (TrialSummaries([1]), Reports(trial_ids=[1]), LogPage(task_id="1.a"))


@pytest.fixture
def bucket(tmp_path):
    with s3_server(tmp_path) as url:
        yield {
            "STEADFAST_METRICS_STORE": f"s3://{BUCKET}/copies",
            "STEADFAST_METRICS_COPY_HOURS": str(SECONDS),
            "STEADFAST_METRICS_COPY_KEEP_DAYS": "0",
            "STEADFAST_S3_ENDPOINT_URL": url,
            "STEADFAST_S3_ACCESS_KEY": KEY,
            "STEADFAST_S3_SECRET_KEY": SECRET,
        }


def settings_of(bucket):
    names = ("metrics_store", "s3_endpoint_url", "s3_access_key", "s3_secret_key")
    return MetricsSettings(**{name: bucket[f"STEADFAST_{name.upper()}"] for name in names})


def test_what_is_lost_is_restored_from_the_bucket(broker, credentials, tmp_path, bucket):
    async def work():
        client = await nats.connect(broker.url, user_credentials=str(credentials))
        await ensure_streams(client.jetstream())
        journal, bus_client = JetStreamLog(client, {}), BusClient(client)

        async def tell(first, last):
            for number in range(first, last):
                points = training([number], loss=[1 / number])
                batch = reports(points, validation([number], loss=[0.5]), number=number)
                await client.jetstream().publish(subjects.reports(1), msgspec.json.encode(batch))
                text = lines(f"line {number}", offset=number - 1)
                await client.jetstream().publish(subjects.logs("1.a"), msgspec.json.encode(text))

        async def answers(count):
            await eventually(lambda: is_folded(bus_client, count))
            return [await answer_to(bus_client, query) for query in QUERIES]

        await tell(1, 40)
        metrics = Metrics(broker.url, credentials, database, tmp_path / "logs", **bucket)
        before = await answers(39)
        await eventually(lambda: is_copied(journal))
        metrics.kill()
        for file in tmp_path.glob("metrics.db*"):
            file.unlink()
        for stream in (subjects.REPORTS, subjects.LOGS):
            await journal.forget(stream, (await journal.bounds(stream))[1])
        metrics.start()
        assert await answers(39) == before
        await tell(40, 50)
        await answers(49)
        store = await store_of(settings_of(bucket), "metrics", journal)
        await eventually(lambda: is_swept(journal, store))
        metrics.kill()
        await client.close()

    database = f"sqlite:///{tmp_path}/metrics.db"
    asyncio.run(work())


def test_a_rebuild_that_is_asked_for_continues_from_the_copy(broker, credentials, tmp_path):
    """What a database says otherwise than the streams is right again, and a damaged copy changes nothing."""
    stored = {
        "STEADFAST_METRICS_STORE": str(tmp_path / "copies"),
        "STEADFAST_METRICS_COPY_HOURS": str(SECONDS),
        "STEADFAST_METRICS_COPY_KEEP_DAYS": "0",
    }
    path = tmp_path / "metrics.db"

    async def work():
        client = await nats.connect(broker.url, user_credentials=str(credentials))
        await ensure_streams(client.jetstream())
        journal, bus_client = JetStreamLog(client, {}), BusClient(client)

        async def tell(first, last):
            for number in range(first, last):
                batch = reports(
                    training([number], loss=[1 / number]), validation([number], loss=[0.5]), number=number
                )
                await client.jetstream().publish(subjects.reports(1), msgspec.json.encode(batch))
                text = lines(f"line {number}", offset=number - 1)
                await client.jetstream().publish(subjects.logs("1.a"), msgspec.json.encode(text))

        async def answers(count):
            await eventually(lambda: is_folded(bus_client, count))
            return [await answer_to(bus_client, query) for query in QUERIES]

        async def ask():
            request = RebuildFromCopyAsked(owner="metrics", reason="asked for by admin")
            id = uuid.uuid4().hex
            body = codec.encode(request, id=id, actor="gateway", at=1.0)
            await client.jetstream().publish(codec.subject_of(request), body, headers={"Nats-Msg-Id": id})
            await asyncio.to_thread(metrics.process.wait, 200)
            metrics.start()

        await tell(1, 40)
        metrics = Metrics(broker.url, credentials, f"sqlite:///{path}", tmp_path / "logs", **stored)
        await answers(39)
        await eventually(lambda: is_copied(journal))
        # From here on there is no newer copy.
        metrics.kill()
        metrics._environment["STEADFAST_METRICS_COPY_HOURS"] = "1000"
        metrics.start()
        await tell(40, 45)
        before = await answers(44)
        metrics.kill()
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            assert connection.execute("DELETE FROM summaries").rowcount
            assert connection.execute("DELETE FROM log_chunks").rowcount
        metrics.start()
        assert [await answer_to(bus_client, query) for query in QUERIES] != before
        await ask()
        assert await answers(44) == before
        assert "database.rebuilt" in metrics.output()
        (pages,) = [folder for folder in (tmp_path / "copies").rglob("*") if folder.is_file()][:1]
        pages.write_bytes(b"damaged")
        await ask()
        assert await answers(44) == before
        assert "rebuild.refused" in metrics.output()
        assert pages.name in metrics.output()
        metrics.kill()
        await client.close()

    asyncio.run(work())


async def eventually(holds):
    async with asyncio.timeout(200):
        while not await holds():
            await asyncio.sleep(0.05)


async def is_folded(bus_client, count):
    """Whether so many batches of reports and lines are there, each once."""
    rows = (await answer_to(bus_client, Reports(trial_ids=[1])))["rows"]
    texts = [line["text"] for line in (await answer_to(bus_client, LogPage(task_id="1.a")))["lines"]]
    steps = sorted((row["group"], row["steps_completed"]) for row in rows)
    numbers = range(1, count + 1)
    return texts == [f"line {number}" for number in numbers] and steps == [
        (group, number) for group in ("training", "validation") for number in numbers
    ]


async def is_copied(journal):
    newest = await newest_copy(journal, "metrics")
    streams = (subjects.REPORTS, subjects.LOGS)
    ends = [(await journal.bounds(stream))[1] for stream in streams]
    return [newest.fact.through.get(stream, 0) for stream in streams] == ends


async def is_swept(journal, store):
    """Whether nothing is in the store but what the newest copy needs."""
    newest = await newest_copy(journal, "metrics")
    manifest = await asyncio.to_thread(store.manifest, newest.fact.copy, "metrics")
    return await asyncio.to_thread(store.keys) == manifest.keys | {newest.fact.copy}

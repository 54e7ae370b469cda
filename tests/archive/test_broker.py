"""The archive beside a real broker: who may remove, what readers and owners see of it, and older streams."""

import asyncio
import contextlib

import pytest

from det_contracts import subjects
from services.archive.cutting import Cutter, Limits
from services.archive.sealing import Sealer
from services.kit.archive.log import ArchivedLog
from services.kit.archive.saved import fetch_saved_positions, serve_saved_position
from services.kit.archive.segments import Segments
from services.kit.blobs import DirectoryBlobs
from services.kit.jetstream_api import request
from services.kit.log import NotStored, OutcomeUnknown, PositionRemoved
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_range import read_range
from services.local.remake import remake
from tests.archive.places import NOW, progressed

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
CONTROL = subjects.CONTROL
COUNT = 200


@contextlib.asynccontextmanager
async def connected(broker, who="searcher"):
    connection = await broker.connect(broker.authority.service(who))
    try:
        yield connection
    finally:
        await connection.close()


async def filled(connection, count):
    await ensure_streams(connection.jetstream())
    log = JetStreamLog(connection)
    for n in range(count):
        await log.append(progressed(n % 7 + 1, n))


def working(connection, segments):
    """Who seals and who cuts, and the broker's stream."""
    stream = JetStreamLog(connection)
    sealer = Sealer(stream, segments, count=COUNT)
    limits = Limits(keep_s=0, keep_events=0)
    return sealer, Cutter(stream, sealer, segments, limits, owners=("toy",), clock=lambda: NOW), stream


def test_readers_see_no_cut_and_only_the_archive_may(broker, tmp_path):
    async def work():
        segments = Segments(DirectoryBlobs(tmp_path))
        async with connected(broker, "intake") as intake, connected(broker, "archive") as archive:
            await filled(intake, 5 * COUNT + 5)
            sealer, cutter, stream = working(archive, segments)
            whole = await read_range(stream, CONTROL, keep=10**6)
            while await sealer.seal() is not None:
                pass
            # The services' own credentials do not suffice: nobody answers them.
            for refused in (JetStreamLog(intake),):
                with pytest.raises(OutcomeUnknown):
                    await refused.forget(CONTROL, 10)
            log = ArchivedLog(JetStreamLog(intake), segments)
            async with log.read(CONTROL, after=0) as feed:
                messages = list((await feed.batch()).messages)
                assert await cutter.cut({"toy": 10**9}) == 5 * COUNT
                while len(messages) < len(whole):
                    messages += (await feed.batch()).messages
            assert messages[: len(whole)] == whole
            assert (await read_range(log, CONTROL, keep=10**6))[: len(whole)] == whole
            story = ["control.trial.3.>"]
            assert await read_range(log, CONTROL, subjects=story) == [
                message for message in whole if message.subject.startswith("control.trial.3.")
            ]
            assert await log.last(whole[0].subject) is not None
            with pytest.raises(PositionRemoved, match="STEADFAST_ARCHIVE"):
                await read_range(JetStreamLog(intake), CONTROL)

    asyncio.run(work())


def test_a_stream_that_denies_purging_is_reported_and_can_be_remade(broker, tmp_path):
    async def work():
        connection = await broker.connect(broker.authority.operator())
        await filled(connection, 2 * COUNT)
        config = (await request(connection, f"STREAM.INFO.{CONTROL}", {}))["config"]
        answer = await request(connection, f"STREAM.UPDATE.{CONTROL}", config | {"deny_purge": True})
        assert answer["config"]["deny_purge"]
        # Services start with it as it is.
        await ensure_streams(connection.jetstream())
        sealer, cutter, stream = working(connection, Segments(DirectoryBlobs(tmp_path)))
        assert await sealer.seal() is not None
        with pytest.raises(NotStored, match=r"services\.local\.remake"):
            await cutter.cut({"toy": 10**9})
        whole = await read_range(stream, CONTROL, keep=10**6)
        await remake(connection)
        assert await read_range(stream, CONTROL, keep=10**6) == whole
        assert await cutter.cut({"toy": 10**9}) == COUNT
        await connection.close()

    asyncio.run(work())


def test_the_slowest_process_of_a_service_counts(broker):
    async def work():
        async with connected(broker, "gateway") as gateway, connected(broker, "archive") as archive:
            for position in (70, None, 30):
                await serve_saved_position(gateway, "gateway", lambda position=position: position)
            await gateway.flush()
            # On a busy machine answers take their time.
            async with asyncio.timeout(60):
                while (positions := await fetch_saved_positions(archive, ("gateway", "searcher"), 1.0))[
                    "gateway"
                ] != 30:
                    assert positions["gateway"] in (0, 70), "who did not answer in time does not count"
            assert positions["searcher"] == 0

    asyncio.run(work())

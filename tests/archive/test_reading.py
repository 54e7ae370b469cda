"""What was moved to the archive reads as if it lay in the stream still; what is not as it was is refused."""

import asyncio
import io
import random

import msgspec
import pytest

from det_contracts import subjects
from services.kit.archive import segments as segments_module
from services.kit.archive.log import SEALED
from services.kit.archive.segment import digest_of, write_header
from services.kit.log import BadSegment, PositionRemoved
from services.kit.log_memory import matches
from services.kit.log_range import read_range
from tests.archive.places import Place
from tests.fixtures.lagging_log import LaggingLog

CONTROL = subjects.CONTROL


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "archive")


async def everything(log, after=0, filters=()):
    return await read_range(log, CONTROL, after=after, subjects=filters, keep=10**6)


async def cut_all(place, saved=10**9):
    return await place.cutter.cut({"toy": saved})


def test_the_log_reads_as_before_from_every_position(place):
    async def work():
        await place.fill(51)
        await place.seal()
        assert await cut_all(place) == 50
        assert (await place.stream.bounds(CONTROL))[0] == 51
        with pytest.raises(PositionRemoved):
            await everything(place.stream)
        for after in range(len(place.whole())):
            assert await everything(place.log, after) == place.whole()[after:]
        assert await place.log.bounds(CONTROL) == (1, len(place.whole()))

    asyncio.run(work())


@pytest.mark.parametrize(
    "filters",
    [
        ("control.trial.3.progressed",),
        ("control.trial.3.>", "control.trial.5.*"),
        ("control.trial.*.progressed",),
        ("control.searcher.>",),
        ("control.trial.99.>",),
    ],
)
def test_stories_are_read_from_segments(place, filters, monkeypatch):
    blocks = []
    read = segments_module.Segments._read_block
    monkeypatch.setattr(
        segments_module.Segments, "_read_block", lambda *args: blocks.append(1) or read(*args)
    )

    async def work():
        for trial in range(1, 20):
            await place.fill(10, trials=1)
            place.stream.streams[CONTROL][-1]
            await place.fill(10, trials=trial)
        wanted = await everything(place.stream, filters=filters)
        await place.seal()
        await cut_all(place)
        blocks.clear()
        assert await everything(place.log, filters=filters) == wanted
        if filters == ("control.trial.99.>",):
            assert not blocks, "what the index does not know is not looked for"

    asyncio.run(work())


@pytest.mark.parametrize(
    "filters",
    [(), ("control.trial.*.>",), ("control.trial.3.>", "control.archive.>"), ("control.trial.9.>",)],
)
def test_a_broker_behind_the_others_is_waited_for_and_the_archive_is_read(tmp_path, filters):
    """Trial 3 is in the archive alone; the broker says at first that it has nothing."""

    async def work():
        place = Place(tmp_path / "archive", stream=LaggingLog(), count=20)
        place.stream.caught_up.set()
        await place.fill(42, trials=3)
        await place.seal()
        assert await cut_all(place) == 40
        await place.fill(10, trials=2)
        wanted = [m for m in place.whole() if not filters or any(matches(f, m.subject) for f in filters)]
        assert await everything(place.log, filters=filters) == wanted

    asyncio.run(work())


def test_the_newest_of_a_subject_is_found_wherever_it_lies(place):
    async def work():
        await place.fill(100)
        newest = {message.subject: message for message in place.whole()}
        await place.seal()
        assert await cut_all(place) >= 100
        log = place.log
        for _ in range(2):
            for subject, message in newest.items():
                assert await log.last(subject) == message
            assert await log.last("control.trial.99.progressed") is None
        # What comes later counts, also once it is moved, for who has looked before.
        await place.fill(100)
        newest = {message.subject: message for message in place.whole() if message.subject != SEALED}
        await place.seal()
        assert await cut_all(place) >= 200
        for subject, message in newest.items():
            assert await log.last(subject) == message

    asyncio.run(work())


def test_who_falls_behind_the_cut_goes_on_in_the_archive(place):
    async def work():
        await place.fill(1500)
        log, messages = place.log, []
        async with log.read(CONTROL, after=0) as feed:
            messages += (await feed.batch()).messages
            place.count = 300
            await place.seal()
            assert await cut_all(place) == 1500
            assert messages[-1].position < 1500
            await place.fill(10)
            while len(messages) < len(place.whole()):
                batch = await feed.batch()
                messages += batch.messages
            assert batch.caught_up
        assert messages == place.whole()

    asyncio.run(work())


def test_what_is_nowhere_is_refused(place):
    async def work():
        await place.fill(30)
        await place.seal()
        await place.stream.forget(CONTROL, 35)
        with pytest.raises(PositionRemoved, match="begins at position"):
            async with place.log.read(CONTROL, after=0):
                pass
        await place.fill(5)
        with pytest.raises(PositionRemoved, match="begins at position"):
            await everything(place.log)

    async def without_an_archive():
        await place.fill(30)
        await place.stream.forget(CONTROL, 5)
        with pytest.raises(PositionRemoved):
            await everything(place.log)

    asyncio.run(work())
    place.stream = type(place.stream)()
    asyncio.run(without_an_archive())


def test_a_reader_may_give_up_at_any_moment(place):
    """Nothing is lost of what the next batch brings."""

    async def work():
        await place.fill(400)
        await place.seal()
        await cut_all(place)
        messages = []
        chance = random.Random(7)
        async with place.log.read(CONTROL, after=0) as feed:
            while len(messages) < len(place.whole()):
                waiting = asyncio.ensure_future(feed.batch())
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                if not waiting.done() and chance.random() < 0.5:
                    waiting.cancel()
                    await asyncio.wait([waiting])
                    if waiting.cancelled():
                        continue
                messages += (await waiting).messages
        assert messages == place.whole()

    asyncio.run(work())


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x40
    path.write_bytes(content)


def swap(path, place):
    other = next(file for file in place.files() if file != path)
    path.write_bytes(other.read_bytes())


def blob(place, key):
    return place.folder / key[:2] / key


@pytest.mark.parametrize("what", ["content", "index", "header"])
@pytest.mark.parametrize("how", ["damaged", "missing", "swapped", "cut short"])
def test_a_bad_segment_is_named_and_refused(place, what, how):
    async def work():
        await place.fill(40)
        first, second, *_ = await place.seal()
        await cut_all(place)
        key = {"content": first.content, "index": first.index, "header": second.before}[what]
        path = blob(place, key)
        match how:
            case "damaged":
                damage(path)
            case "missing":
                path.unlink()
            case "swapped":
                swap(path, place)
            case "cut short":
                path.write_bytes(path.read_bytes()[:-1])
        filters = ("control.trial.2.>",) if what == "index" else ()
        with pytest.raises(BadSegment) as refused:
            await everything(place.log, filters=filters)
        named = "from 1 to 10" if what != "header" else key
        assert named in str(refused.value)
        assert "backup" in str(refused.value)

    asyncio.run(work())


def test_segments_of_another_chain_are_refused(place, tmp_path):
    """A header that is sound by itself, and names one that does not lie before it."""

    async def work():
        other = Place(tmp_path / "archive")
        await other.fill(5)
        other.count = 15
        await other.fill(25, trials=3)
        (foreign, *_) = await other.seal()
        await place.fill(40)
        headers = await place.seal()
        forged = msgspec.structs.replace(headers[-1], before=digest_of(write_header(foreign)))
        key = await place.segments.store(forged, b"", io.BytesIO(blob(place, forged.content).read_bytes()))
        with pytest.raises(BadSegment, match="is not the one before"):
            await place.segments.chain(key)

    asyncio.run(work())

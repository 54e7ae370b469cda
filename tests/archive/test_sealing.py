"""Sealing and cutting: what is removed lies in the archive, whoever dies when; and never what is needed."""

import asyncio
import io
import random
from collections import Counter

import pytest

from det_contracts import codec, subjects
from det_contracts.events.archive import SegmentSealed
from services.archive import cutting
from services.archive.archiver import Archiver
from services.kit.archive.log import SEALED
from services.kit.blobs import DirectoryBlobs
from services.kit.log import BadSegment, Draft, FenceLost, LogTruncated, NotStored, OutcomeUnknown
from services.kit.log_memory import MemoryLog
from services.kit.log_range import read_range
from tests.archive.places import NOW, Place, draft
from tests.fixtures.waiting import until

CONTROL = subjects.CONTROL
ALL = {"toy": 10**9}


class Killed(BaseException):
    """As `kill -9`: nobody catches it."""


class Interrupted:
    """Ends its user at one of the calls, before or after it took place."""

    def __init__(self):
        self.left = None
        self.after = False
        self.calls = Counter()

    def arm(self, left, after):
        self.left, self.after = left, after

    def strikes(self, name):
        self.calls[name] += 1
        if self.left is None:
            return False
        self.left -= 1
        return self.left == -1

    def run(self, name, call):
        strikes = self.strikes(name)
        if strikes and not self.after:
            raise Killed(name)
        result = call()
        if strikes:
            if result is not None:
                result.close()
            raise Killed(name)
        return result

    async def wait(self, name, call):
        strikes = self.strikes(name)
        if strikes and not self.after:
            raise Killed(name)
        result = await call()
        if strikes:
            raise Killed(name)
        return result


class BreakingLog(MemoryLog):
    def __init__(self, ends):
        super().__init__()
        self.ends = ends

    async def append_batch(self, drafts, *, fence):
        call = super().append_batch
        return await self.ends.wait("append", lambda: call(drafts, fence=fence))

    async def forget(self, stream, through):
        call = super().forget
        return await self.ends.wait("forget", lambda: call(stream, through))

    async def last(self, subject):
        call = super().last
        return await self.ends.wait("last", lambda: call(subject))

    async def bounds(self, stream):
        call = super().bounds
        return await self.ends.wait("bounds", lambda: call(stream))


class BreakingBlobs(DirectoryBlobs):
    def __init__(self, root, ends):
        super().__init__(root)
        self.ends = ends

    def put(self, key, file):
        call = super().put
        return self.ends.run("put", lambda: call(key, file))

    def open(self, key, offset=0):
        call = super().open
        return self.ends.run("open", lambda: call(key, offset))


def breaking(tmp_path, **options):
    ends = Interrupted()
    place = Place(tmp_path / "archive", stream=BreakingLog(ends), **options)
    place.blobs = BreakingBlobs(tmp_path / "archive", ends)
    return place, ends


async def all_of(place):
    return await read_range(place.log, CONTROL, keep=10**6)


async def seal_and_cut(place):
    await place.seal()
    return await place.cutter.cut(ALL)


@pytest.mark.parametrize("after", [False, True], ids=["before", "behind"])
def test_who_is_killed_at_any_step_goes_on(tmp_path, after, monkeypatch):
    """At each call to log and archive in turn: nothing is missing then, and a successor ends it."""
    monkeypatch.setattr(cutting, "STEP", 7)
    monkeypatch.setattr(cutting, "PAUSE_S", 0)
    struck = set()

    async def interrupted_at(number):
        place, ends = breaking(tmp_path / str(number), owners=("toy",))
        await place.fill(33)
        await place.decide("toy")
        stored = len(place.whole())
        ends.arm(number, after)
        try:
            await seal_and_cut(place)
        except Killed as killed:
            struck.add(str(killed))
        ended = ends.left >= 0
        ends.left = None
        assert [m for m in await all_of(place)] == place.whole(), f"interrupted at call {number}"
        assert await seal_and_cut(place) == 30
        assert await all_of(place) == place.whole()
        facts = [m for m in place.whole() if m.subject == SEALED]
        sealed = [codec.decode(m.body, m.position).event for m in facts]
        assert [(segment.first, segment.last) for segment in sealed] == [(1, 10), (11, 20), (21, 30)]
        assert len(place.whole()) == stored + 3
        return ended

    async def work():
        number = 0
        while not await interrupted_at(number):
            number += 1

    asyncio.run(work())
    assert struck == {"append", "forget", "last", "bounds", "put", "open"}


def test_any_mixture_of_writing_sealing_and_cutting_loses_nothing(tmp_path):
    async def mixture(seed):
        chance = random.Random(seed)
        place = Place(tmp_path / str(seed), owners=("toy", subjects.INTAKE))
        saved = 0
        for _ in range(40):
            match chance.randrange(6):
                case 0 | 1:
                    await place.fill(chance.randrange(30), trials=chance.randrange(1, 9))
                case 2:
                    await place.decide(chance.choice(place.owners), to=chance.randrange(10**6))
                case 3:
                    place.count = chance.randrange(3, 20)
                    await place.seal()
                case 4:
                    saved = chance.randrange(saved, len(place.whole()) + 1)
                case 5:
                    await place.cutter.cut({"toy": saved})
            first, _ = await place.stream.bounds(CONTROL)
            assert first <= saved + 1
        after = chance.randrange(len(place.whole()) + 1)
        messages = await read_range(place.log, CONTROL, after=after, keep=10**6)
        assert messages == place.whole()[after:], f"seed {seed}"

    async def work():
        for seed in range(30):
            await mixture(seed)

    asyncio.run(work())


def test_no_newest_decision_is_ever_removed(tmp_path):
    async def work():
        place = Place(tmp_path, owners=("toy", "other"))
        await place.fill(15)
        await place.decide("toy")
        await place.fill(20)
        await place.seal()
        assert await place.cutter.cut(ALL) == 15
        # The broker takes its next decision, and then the way is free.
        await place.decide("toy", to=2)
        assert await place.cutter.cut(ALL) == 30

    asyncio.run(work())


def test_what_the_intake_would_read_back_stays(tmp_path):
    async def work():
        place = Place(tmp_path, owners=(subjects.INTAKE,))
        await place.fill(35)
        await place.decide(subjects.INTAKE, to=3, position=12)
        await place.seal()
        assert await place.cutter.cut(ALL) == 12

    asyncio.run(work())


@pytest.mark.parametrize(
    ("options", "saved", "through"),
    [
        ({}, {"toy": 17, "other": 40}, 17),
        ({}, {"toy": 0, "other": 40}, 0),
        ({"keep_events": 20}, ALL, 19),
        ({"keep_s": NOW + 1}, ALL, 0),
        ({"keep_s": 100.0}, ALL, 30),
    ],
    ids=["saved", "nobody answers", "newest", "young", "old"],
)
def test_what_stays(tmp_path, options, saved, through):
    async def work():
        place = Place(tmp_path, **options)
        await place.fill(36)
        await place.seal()
        cutter = place.cutter
        assert await cutter.cut(saved) == through
        assert cutter.bound.why

    asyncio.run(work())


def test_nothing_is_removed_that_the_archive_has_not(tmp_path):
    async def work():
        place = Place(tmp_path)
        await place.fill(40)
        first, *_ = await place.seal()
        victim = place.folder / first.content[:2] / first.content
        victim.write_bytes(victim.read_bytes()[:-1] + b"x")
        with pytest.raises(BadSegment, match=r"from \d+ to \d+"):
            await place.cutter.cut(ALL)
        assert (await read_range(place.stream, CONTROL, after=0, keep=1000))[-1].position >= 40

    asyncio.run(work())


def test_what_is_not_read_back_as_it_was_written_is_not_sealed(tmp_path):
    async def work():
        place = Place(tmp_path)
        await place.fill(10)
        put = place.blobs.put
        place.blobs.put = lambda key, file: put(key, io.BytesIO(file.read()[:-1]))
        with pytest.raises(BadSegment):
            await place.seal()
        assert await place.stream.last(SEALED) is None

    asyncio.run(work())


def test_two_who_seal_at_once_make_one_chain(tmp_path):
    async def work():
        place = Place(tmp_path)
        await place.fill(25)
        slow, quick = place.sealer, place.sealer
        verify = slow._segments.verify

        async def overtaken(*args):
            await quick.seal()
            return await verify(*args)

        slow._segments.verify = overtaken
        with pytest.raises(FenceLost):
            await slow.seal()
        await place.seal()
        assert await place.cutter.cut(ALL) == 20
        assert await all_of(place) == place.whole()

    asyncio.run(work())


def test_a_gap_between_archive_and_stream_is_reported(tmp_path):
    async def work():
        place = Place(tmp_path)
        await place.fill(40)
        await place.stream.forget(CONTROL, 3)
        with pytest.raises(LogTruncated, match=r"begins at position 4, the archive .* ends at 0"):
            await place.seal()

    asyncio.run(work())


def test_an_unknown_fact_about_the_archive_stops_it(tmp_path):
    """A later version has another one: whoever does not know it seals and removes nothing."""

    async def work():
        place = Place(tmp_path)
        await place.fill(12)
        await place.seal()
        event = SegmentSealed(stream=CONTROL, first=11, last=12, header="x", size=1)
        body = draft(event, "later").body.replace(b'"version":1', b'"version":9')
        await place.stream.append(Draft(SEALED, body, "later"))
        for work in (place.seal(), place.cutter.cut(ALL)):
            with pytest.raises(BadSegment, match="unknown format"):
                await work

    asyncio.run(work())


@pytest.mark.parametrize("error", [OutcomeUnknown("away"), NotStored("full"), OSError("no such bucket")])
def test_a_failed_seal_is_reported_and_tried_again(tmp_path, error):
    async def work():
        place = Place(tmp_path)
        await place.fill(25)
        sealer, cutter = place.sealer, place.cutter
        store, failing = sealer._segments.store, [error]

        async def once(*args):
            if failing:
                raise failing.pop()
            return await store(*args)

        sealer._segments.store = once

        async def saved():
            return ALL

        work = Archiver(sealer, cutter, saved, interval_s=0.01)
        await work.run_once()
        assert str(error) in work.failure
        await work.run_once()
        assert not work.failure
        assert (work.archived, work.removed) == (20, 20)

    asyncio.run(work())


def test_who_no_longer_leads_reports_no_failure(tmp_path):
    async def work():
        leaders = {"this one"}

        async def saved():
            raise OutcomeUnknown("away")

        place = Place(tmp_path)
        work = Archiver(
            place.sealer, place.cutter, saved, interval_s=0.01, is_leader=lambda: "this one" in leaders
        )
        running = asyncio.create_task(work.run())
        await until(lambda: work.failure == "away")
        leaders.clear()
        await until(lambda: not work.failure)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(work())


def test_only_who_leads_works(tmp_path):
    async def work():
        place = Place(tmp_path)
        await place.fill(25)

        async def saved():
            return ALL

        work = Archiver(place.sealer, place.cutter, saved, interval_s=0.01, is_leader=lambda: False)
        await work.run_once()
        assert not place.files()

    asyncio.run(work())

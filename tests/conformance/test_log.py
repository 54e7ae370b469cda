"""One suite for both logs: the in-memory twin keeps the rules of the real one."""

import asyncio
import contextlib
import gc

import pytest

from det_contracts import subjects
from det_contracts.limits import WITNESS_MESSAGES
from services.kit.log import BATCH_LIMIT, Draft, Fence, FenceLost, LogTruncated, NotStored
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_memory import MemoryLog, matches
from services.kit.log_range import read_range

FENCED = subjects.decision("tests")


@contextlib.asynccontextmanager
async def memory(_):
    yield MemoryLog()


@contextlib.asynccontextmanager
async def jetstream(broker):
    connection = await broker.connect()
    await ensure_streams(connection.jetstream())
    try:
        yield JetStreamLog(connection)
    finally:
        await connection.close()


@pytest.fixture(
    params=["memory", pytest.param("jetstream", marks=[pytest.mark.live, pytest.mark.timeout(200)])]
)
def run(request):
    """Runs a test's coroutine with a log."""
    if request.param == "memory":
        return lambda work: asyncio.run(_with(memory(None), work))
    broker = request.getfixturevalue("broker")
    return lambda work: asyncio.run(_with(jetstream(broker), work))


async def _with(opened, work):
    async with opened as log:
        return await work(log)


def draft(what, id=None, about=1):
    return Draft(f"control.tests.thing.{about}.{what}", what.encode(), id or f"id-{what}-{about}")


def decided(number, *drafts):
    return [Draft(FENCED, b"decision", f"decision-{number}"), *drafts]


async def read(log, count, stream=subjects.CONTROL, after=0, filters=()):
    """At least the next `count` messages, read until the reader has caught up."""
    messages, caught_up = [], False
    async with log.read(stream, after=after, subjects=filters) as feed:
        while len(messages) < count or not caught_up:
            batch = await asyncio.wait_for(feed.batch(), 60)
            messages += batch.messages
            caught_up = batch.caught_up
    return messages


def test_positions_count_from_one_and_repeats_are_dropped(run):
    async def work(log):
        assert await log.append(draft("a")) == 1
        assert await log.append(draft("b")) == 2
        assert await log.append(draft("a")) == 1
        assert await log.bounds(subjects.CONTROL) == (1, 2)

    run(work)


def test_reading_gives_everything_in_order_and_then_waits_for_more(run):
    async def work(log):
        for what in "abc":
            await log.append(draft(what))
        async with log.read(subjects.CONTROL, after=1) as feed:
            messages = []
            while len(messages) < 2:
                messages += (await asyncio.wait_for(feed.batch(), 60)).messages
            assert [(m.position, m.body, m.subject) for m in messages] == [
                (2, b"b", "control.tests.thing.1.b"),
                (3, b"c", "control.tests.thing.1.c"),
            ]
            await log.append(draft("d"))
            batch = await asyncio.wait_for(feed.batch(), 60)
            while not batch.messages:
                batch = await asyncio.wait_for(feed.batch(), 60)
            assert [m.body for m in batch.messages] == [b"d"]
            assert batch.caught_up

    run(work)


def test_an_empty_stream_is_caught_up_at_once(run):
    async def work(log):
        async with log.read(subjects.REPORTS, after=0) as feed:
            batch = await asyncio.wait_for(feed.batch(), 60)
            assert (list(batch.messages), batch.caught_up) == ([], True)

    run(work)


def test_filters_choose_by_wildcards(run):
    async def work(log):
        for about in (1, 2, 3):
            for what in ("came", "went"):
                await log.append(draft(what, about=about))
        went = await read(log, 3, filters=["control.tests.thing.*.went"])
        assert [m.position for m in went] == [2, 4, 6]
        some = await read(log, 3, filters=["control.tests.thing.1.>", "control.tests.thing.3.came"])
        assert [m.position for m in some] == [1, 2, 5]

    run(work)


def test_a_batch_is_stored_whole_behind_its_fence(run):
    async def work(log):
        last = await log.append_batch(decided(1, draft("a"), draft("b")), fence=Fence(FENCED, 0))
        assert last == 3
        assert await log.append_batch(decided(2, draft("c")), fence=Fence(FENCED, 1)) == 5
        assert await log.append_batch(decided(3), fence=Fence(FENCED, 4)) == 6

    run(work)


@pytest.mark.parametrize("claimed", [0, 2, 99])
def test_a_lost_fence_stores_nothing(run, claimed):
    async def work(log):
        await log.append_batch(decided(1, draft("a")), fence=Fence(FENCED, 0))
        with pytest.raises(FenceLost):
            await log.append_batch(decided(2, draft("b")), fence=Fence(FENCED, claimed))
        with pytest.raises(FenceLost):
            await log.append_batch(decided(3), fence=Fence(FENCED, claimed))
        assert await log.bounds(subjects.CONTROL) == (1, 2)

    run(work)


def test_the_end_of_a_stream_is_told_to_who_knows_some_of_it(run):
    async def work(log):
        assert await log.end(subjects.CONTROL, after=0) == 0
        for what in "abc":
            await log.append(draft(what))
        assert [await log.end(subjects.CONTROL, after=after) for after in (0, 1, 2, 3)] == [3, 3, 3, 3]
        await log.append(Draft(subjects.witness_of_trial(1), b"fact", "fact"))
        await log.forget(subjects.WITNESS, 1)
        assert [await log.end(subjects.WITNESS, after=after) for after in (0, 1)] == [0, 1]
        await log.append(Draft(subjects.witness_of_trial(1), b"fact", "another"))
        assert [await log.end(subjects.WITNESS, after=after) for after in (0, 1, 2)] == [2, 2, 2]
        filters = {
            ("control.tests.*.1.a", "control.tests.>"): 3,
            ("control.tests.thing.*.b",): 2,
            ("control.x.>",): 1,
        }
        for where, end in filters.items():
            assert await log.end(subjects.CONTROL, after=1, subjects=where) == end

    run(work)


def test_others_do_not_move_the_fence(run):
    async def work(log):
        await log.append_batch(decided(1), fence=Fence(FENCED, 0))
        for n in range(5):
            await log.append(draft(f"x{n}"))
        await log.append_batch(decided(2, draft("a")), fence=Fence(FENCED, 1))

    run(work)


def test_batches_that_make_no_sense_are_refused_here(run):
    async def work(log):
        many = [draft(f"x{n}") for n in range(BATCH_LIMIT)]
        with pytest.raises(ValueError, match=str(BATCH_LIMIT)):
            await log.append_batch(decided(1, *many), fence=Fence(FENCED, 0))
        with pytest.raises(ValueError, match="must begin on"):
            await log.append_batch([draft("a"), draft("b")], fence=Fence(FENCED, 0))

    run(work)


def test_a_single_message_may_be_fenced_on_another_subject(run):
    async def work(log):
        await log.append_batch(decided(1), fence=Fence(FENCED, 0))
        for number in range(2, 4):
            # The fence does not move by it.
            position = await log.append_batch([draft(f"fact-{number}")], fence=Fence(FENCED, 1))
            assert position == number
        await log.append_batch(decided(2), fence=Fence(FENCED, 1))
        with pytest.raises(FenceLost):
            await log.append_batch([draft("late")], fence=Fence(FENCED, 1))
        assert await log.bounds(subjects.CONTROL) == (1, 4)
        # A repeat is known by its id, as with `append`.
        assert await log.append_batch([draft("fact-2")], fence=Fence(FENCED, 4)) == 2

    run(work)


def test_an_inbox_takes_so_much_of_one_sender_and_lets_go_of_what_is_admitted(run):
    async def work(log):
        flood = subjects.witness_of_trial(7)
        for number in range(WITNESS_MESSAGES):
            await log.append(Draft(flood, b"fact", f"flood-{number}"))
        with pytest.raises(NotStored, match="maximum messages per subject"):
            async with asyncio.timeout(60):
                await refused(log, Draft(flood, b"fact", "one too many"))
        assert await log.append(Draft(subjects.witness_of_trial(8), b"fact", "other")) == WITNESS_MESSAGES + 1
        await log.forget(subjects.WITNESS, 10)
        assert await log.bounds(subjects.WITNESS) == (11, WITNESS_MESSAGES + 1)
        assert await log.append(Draft(flood, b"fact", "one too many")) == WITNESS_MESSAGES + 2
        messages = await read(log, WITNESS_MESSAGES - 8, subjects.WITNESS, after=5)
        assert [messages[0].position, messages[-1].position] == [11, WITNESS_MESSAGES + 2]
        await log.forget(subjects.WITNESS, WITNESS_MESSAGES + 2)
        assert await log.bounds(subjects.WITNESS) == (WITNESS_MESSAGES + 3, WITNESS_MESSAGES + 2)

    run(work)


async def refused(log, message):
    """Try once; what is refused for now is tried again for half a minute otherwise."""
    if isinstance(log, MemoryLog):
        await log.append(message)
    await log._publish(message.subject, message.body, {"Nats-Msg-Id": message.id})


def test_the_newest_of_a_subject(run):
    async def work(log):
        assert await log.last(FENCED) is None
        await log.append_batch(decided(1), fence=Fence(FENCED, 0))
        await log.append_batch(decided(2), fence=Fence(FENCED, 1))
        assert (await log.last(FENCED)).position == 2

    run(work)


def test_a_position_beyond_the_end_is_refused(run):
    async def work(log):
        await log.append(draft("a"))
        with pytest.raises(LogTruncated, match="ends at position 1"):
            async with log.read(subjects.CONTROL, after=7):
                pass

    run(work)


def test_a_large_stream_is_read_without_gaps_by_two_readers(run):
    async def work(log):
        fence = 0
        for n in range(6):
            drafts = decided(n, *(draft(f"x{n}-{i}") for i in range(600)))
            fence = await log.append_batch(drafts, fence=Fence(FENCED, fence)) - 600
        both = await asyncio.gather(read(log, 3606), read(log, 3600, after=6))
        assert [m.position for m in both[0]] == list(range(1, 3607))
        assert [m.position for m in both[1]] == list(range(7, 3607))

    run(work)


@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("a.*.c", "a.b.c", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a.b", "a.b", True),
        ("*.b", "a.c", False),
    ],
)
def test_wildcards_of_the_in_memory_broker(pattern, subject, fits):
    assert matches(pattern, subject) is fits


# The client library leaves the sockets of broken connections to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.live
@pytest.mark.timeout(200)
def test_a_killed_broker_leaves_no_gap_and_no_double(broker):
    async def work(log):
        messages, count = [], 300

        async def follow():
            async with log.read(subjects.CONTROL, after=0) as feed:
                while len(messages) < count:
                    messages.extend((await feed.batch()).messages)

        async def write():
            for n in range(count):
                await log.append(draft(f"x{n}"))
                if n in (80, 190):
                    broker.kill9()
                    broker.start()

        await asyncio.wait_for(asyncio.gather(follow(), write()), 60)
        assert [m.position for m in messages] == list(range(1, count + 1))
        assert [m.body.decode() for m in messages] == [f"x{n}" for n in range(count)]

    asyncio.run(_with(jetstream(broker), work))
    gc.collect()


@pytest.mark.live
@pytest.mark.timeout(200)
def test_a_hole_is_noticed(broker):
    async def work(log):
        await log.append(draft("a"))
        await log._connection.jetstream().delete_stream(subjects.CONTROL)
        from nats.js.api import StreamConfig

        js = log._connection.jetstream()
        await js.add_stream(StreamConfig(name=subjects.CONTROL, subjects=["control.>"], allow_direct=True))
        for what in "abc":
            await log.append(draft(what, id=f"again-{what}"))
        await js.delete_msg(subjects.CONTROL, 2)
        with pytest.raises(LogTruncated, match="hole"):
            await read(log, 3)

    asyncio.run(_with(jetstream(broker), work))


@pytest.mark.live
@pytest.mark.timeout(200)
def test_a_reader_hears_of_whatever_ends_its_reading(broker):
    async def work(log):
        async with log.read(subjects.CONTROL, after=0) as feed:
            assert (await feed.batch()).caught_up

            async def fails():
                raise KeyError("state")

            feed._create_consumer = fails
            feed._broken.set()
            with pytest.raises(KeyError):
                await asyncio.wait_for(feed.batch(), 60)

    asyncio.run(_with(jetstream(broker), work))


@pytest.mark.live
@pytest.mark.timeout(200)
def test_a_reader_knows_how_much_is_left_until_it_asks_for_more(broker):
    async def work(log):
        for number in range(10):
            await log.append(draft(f"first-{number}"))
        async with log.read(subjects.CONTROL, after=2) as feed:
            assert feed.lag.left == 8
            taken = 0
            while taken < 8:
                before, taken = taken, taken + len((await feed.batch()).messages)
                # What was handed out last may still be at work.
                assert feed.lag.left == 8 - before
            more = asyncio.ensure_future(feed.batch())
            await asyncio.sleep(0)
            assert feed.lag.left == 0
            await log.append(draft("second"))
            assert len((await more).messages) == 1
            assert feed.lag.left == 1
            assert feed.lag.age_s >= 0

    asyncio.run(_with(jetstream(broker), work))


def test_reading_once_ends_at_the_end_or_at_a_position(run):
    async def work(log):
        assert await read_range(log, subjects.CONTROL) == []
        for about in (1, 2, 3):
            for what in ("came", "went"):
                await log.append(draft(what, about=about))
        everything = await read_range(log, subjects.CONTROL)
        assert [m.position for m in everything] == [1, 2, 3, 4, 5, 6]
        between = await read_range(log, subjects.CONTROL, after=2, before=5)
        assert [m.position for m in between] == [3, 4]
        went = await read_range(log, subjects.CONTROL, before=6, subjects=["control.tests.thing.*.went"])
        assert [m.position for m in went] == [2, 4]
        assert await read_range(log, subjects.CONTROL, subjects=["control.tests.other.>"]) == []

    run(work)


def test_reading_once_keeps_the_newest_that_are_wanted(run):
    async def work(log):
        fence = await log.append_batch(
            decided(1, *(draft(f"x{n}") for n in range(700))), fence=Fence(FENCED, 0)
        )
        newest = await read_range(log, subjects.CONTROL, keep=3)
        assert [m.position for m in newest] == [699, 700, fence]
        odd = await read_range(log, subjects.CONTROL, keep=2, predicate=lambda m: m.position % 2 == 1)
        assert [m.position for m in odd] == [699, 701]

    run(work)

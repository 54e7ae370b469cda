"""Rare events that affect everybody: a full disk, a torn log, a flipped bit, two versions side by side."""

import asyncio

import msgspec
import pytest

from det_contracts import codec, subjects
from det_contracts.events.worker import AllocationExited
from services.kit.log import Draft, Stored
from tests.fixtures.tiers import rest_in_full
from tests.simulation.loop import run
from tests.simulation.plan import KINDS, plan_of
from tests.simulation.simulate import simulate
from tests.simulation.users import people
from tests.simulation.virtual_time import virtual_time
from tests.simulation.world import World

OWNERS = ("searcher", "scheduler", "checkpoints", "metrics")


async def full_for_long(world, chance):
    """The log's disk is full for twenty minutes."""
    await asyncio.sleep(20 + 20 * chance.random())
    world.fault("full", "for twenty minutes")
    world.disk.full = True
    await asyncio.sleep(1200)
    world.disk.full = False


@pytest.mark.parametrize("seed", rest_in_full(range(5), 2))
def test_a_full_disk_stops_everything_and_loses_nothing(seed):
    result = simulate(seed, also=[full_for_long])
    assert result.violation is None, result.story
    assert "for twenty minutes" in result.lines


async def newer_writers(world, chance):
    """Services and scripts of a later version write events that are unknown here."""
    world.newer = {"future.thing", "trial.status_set"}
    for number in range(1000):
        await asyncio.sleep(chance.random())
        name, subject = chance.choice(
            [("future.thing", "control.future.1.thing"), ("trial.status_set", "control.trial.1.status_set")]
        )
        body = msgspec.json.encode(
            {
                "id": f"n{number}",
                "name": name,
                "version": 9,
                "actor": "future",
                "at": 0.0,
                "cause": "",
                "data": {},
            }
        )
        await world.replicas[0].line.append(Draft(subject, body, f"n{number}"))


@pytest.mark.parametrize("seed", rest_in_full(range(5), 2))
def test_what_a_newer_version_writes_is_skipped(seed):
    result = simulate(seed, also=[newer_writers])
    assert result.violation is None, result.story
    assert any(b'"future.thing"' in body for body in result.log)


class OldExit(msgspec.Struct, frozen=True, kw_only=True):
    """The form in which workers of an earlier version reported an exit."""

    worker_id: str
    allocation_id: str
    code: int | None
    text: str = ""


@pytest.mark.parametrize("seed", rest_in_full(range(2, 7), 2))
def test_what_an_older_version_writes_is_read(seed, monkeypatch):
    """Sometimes a worker writes the first version of an event whose second version is current."""
    name = "worker.allocation_exited"
    kind = codec.kind_of(AllocationExited(worker_id="w", allocation_id="a"))
    newer = msgspec.structs.replace(kind, version=2)
    monkeypatch.setitem(codec._by_name, name, newer)
    monkeypatch.setitem(codec._by_record, AllocationExited, newer)
    monkeypatch.setitem(codec._upcasters, (name, 1), _upcast)
    encode = codec.encode

    def by_version(record, **about):
        if type(record) is not AllocationExited or sum(record.allocation_id.encode()) % 2:
            return encode(record, **about)
        old = OldExit(
            worker_id=record.worker_id,
            allocation_id=record.allocation_id,
            code=record.exit_code,
            text=record.message,
        )
        body = encode(record, **about).replace(b'"version":2', b'"version":1', 1)
        return body.replace(msgspec.json.encode(record), msgspec.json.encode(old))

    monkeypatch.setattr(codec, "encode", by_version)
    result = simulate(seed)
    assert result.violation is None, result.story
    assert any(b'"version":1' in body and b'"text"' in body for body in result.log)


def _upcast(data):
    return {
        "worker_id": data["worker_id"],
        "allocation_id": data["allocation_id"],
        "exit_code": data["code"],
        "message": data["text"],
    }


def after_some_time(then):
    """Let a cluster work without trouble, stop one replica, and do something to the log."""

    async def main():
        loop = asyncio.get_running_loop()
        plan = plan_of(1, off=set(KINDS) - {"users"})
        with virtual_time(loop.time, plan):
            world = World(plan)
            world.start()
            working = loop.create_task(people(world))
            log = world.disk.streams[subjects.CONTROL]
            while world.steps < 150 or not any(subjects.is_fact_of_script(m.subject) for m in log):
                await world.sleep(5.0)
                assert loop.time() < 3000, "too little happened"
            working.cancel()
            await world.sleep(30.0)
            return await then(world)

    return run(main())


async def outcome(world, owner, *, from_nothing=False):
    """What happens to a replica that starts now."""
    replica = world.of(owner)[0]
    replica.crash()
    if from_nothing:
        replica.shelf.empty()
    replica.start()
    await asyncio.sleep(20)
    return world.failure


def keep(world, stream, messages):
    """Replace the messages of a stream."""
    world.disk.streams[stream][:] = messages


@pytest.mark.parametrize("owner", OWNERS)
def test_a_log_that_lost_its_tail_is_refused(owner):
    async def tear(world):
        keep(world, subjects.CONTROL, world.disk.streams[subjects.CONTROL][:-3])
        return str(await outcome(world, owner))

    failure = after_some_time(tear)
    assert "LogTruncated" in failure
    assert "was folded already" in failure


def _damaged(world, matches):
    messages = list(world.disk.streams[subjects.CONTROL])
    at = next(i for i, m in enumerate(messages) if matches(m.subject))
    body = bytearray(messages[at].body)
    # Replaces the quote after `{"id`.
    body[4] ^= 0x40
    messages[at] = Stored(messages[at].subject, messages[at].position, bytes(body))
    keep(world, subjects.CONTROL, messages)
    return at + 1


async def damaged_messages(world, chance):
    """A process with an owner's rights writes undecodable messages, also on fenced subjects."""
    subjects_of = [f"control.{owner}.decision" for owner in OWNERS]
    subjects_of += ["control.scheduler.allocation.1.assigned", "control.searcher.trial.1.created"]
    for number in range(200):
        await asyncio.sleep(5 * chance.random())
        body = chance.choice([b"", b"{", b"\xff", b'{"id": "cut', b"[" * 5000])
        await world.replicas[0].line.append(Draft(chance.choice(subjects_of), body, f"damaged-{number}"))


@pytest.mark.parametrize("seed", rest_in_full(range(5), 2))
def test_what_nobody_can_read_stops_nobody(seed):
    result = simulate(seed, also=[damaged_messages])
    assert result.violation is None, result.story


@pytest.mark.parametrize("owner", OWNERS)
def test_a_flipped_bit_in_what_a_script_wrote_stops_nobody(owner):
    async def flip(world):
        _damaged(world, subjects.is_fact_of_script)
        return await outcome(world, owner, from_nothing=True)

    assert after_some_time(flip) is None

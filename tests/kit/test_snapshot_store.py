"""Saving: snapshot, read model and positions together, by several replicas in turn."""

import asyncio
import contextlib
import sqlite3
from dataclasses import dataclass, field

import msgspec
import pytest
import sqlalchemy as sa

from det_contracts.envelope import Recorded
from det_contracts.problems import Refused
from services.kit import snapshot_store, unsaved
from services.kit.database import METADATA, Database
from services.kit.narrowing import PortionFailed
from services.kit.snapshot import Snapshot
from services.kit.snapshot_store import DatabaseSaver
from tests.fixtures.waiting import until

TABLES = sa.MetaData()
SHOWN = sa.Table(
    "shown",
    TABLES,
    sa.Column("stream", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
)


class Sum(msgspec.Struct, frozen=True):
    total: int = 0


@dataclass
class State:
    sums: dict[str, Sum] = field(default_factory=dict)


def project(connection, records, events):
    """Fails when it is given an event twice."""
    if events:
        rows = [{"stream": event.stream, "position": event.position} for event in events]
        connection.execute(sa.insert(SHOWN), rows)


class Replica:
    """Folds two streams of numbers by hand, and leaves the rest to the saver."""

    def __init__(self, database, *, leads, backlog_limit=20_000):
        self.leads = leads
        self.saver = DatabaseSaver(
            database,
            "toy",
            State,
            projection=project,
            is_leader=lambda: self.leads,
            backlog_limit=backlog_limit,
        )
        self.state = State()
        self.at = {"CONTROL": 0, "REPORTS": 0}

    async def fold(self, stream, upto, size=0):
        events = [Recorded(p, None, "", "", 0.0, "", stream) for p in range(self.at[stream] + 1, upto + 1)]
        self.at[stream] = max(self.at[stream], upto)
        previous = self.state.sums.get(stream, Sum())
        self.state.sums[stream] = Sum(previous.total + sum(e.position for e in events))
        await self.saver.changed(self.state, {("sums", stream)}, events, dict(self.at), size)


@pytest.fixture
def database(tmp_path):
    toy_database = Database(f"sqlite:///{tmp_path}/toy.db")
    METADATA.create_all(toy_database.engine)
    TABLES.create_all(toy_database.engine)
    yield toy_database
    toy_database.close()


@contextlib.asynccontextmanager
async def running(*replicas):
    tasks = [asyncio.create_task(r.saver.run()) for r in replicas]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            assert task.cancelled(), task.exception()


async def stored(database):
    """Positions, sums and shown rows as they lie in the database."""

    def work(connection):
        rows = sorted(connection.execute(sa.select(SHOWN.c.stream, SHOWN.c.position)))
        return [tuple(row) for row in rows]

    state, positions = await DatabaseSaver(database, "toy", State).load()
    return positions, {name: s.total for name, s in state.sums.items()}, await database.read(work)


def whole(control, reports):
    rows = [("CONTROL", p) for p in range(1, control + 1)] + [("REPORTS", p) for p in range(1, reports + 1)]
    sums = {"CONTROL": sum(range(control + 1)), "REPORTS": sum(range(reports + 1))}
    return {"CONTROL": control, "REPORTS": reports}, sums, rows


def test_a_start_reads_what_is_loaded_and_goes_through_nothing_else(database):
    """Both indexes begin with the owner: by the wrong one a start reads all that ever was."""
    statements = []
    sa.event.listen(
        database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2:4])
    )
    database.read_sync(Snapshot("toy", State).load)
    statement, values = next(query for query in statements if "away = 0" in query[0])
    plan = database.read_sync(
        lambda c: c.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(values)).fetchall()
    )
    assert [row[-1] for row in plan] == ["SEARCH snapshots USING INDEX snapshots_loaded (owner=?)"]


def test_what_is_folded_again_after_a_reload_is_saved_before_anybody_reads_it(database):
    async def work():
        leader = Replica(database, leads=True)
        await leader.fold("CONTROL", 10)
        waiting = asyncio.create_task(leader.saver.wait_for_position(10))
        while not leader.saver._waiting_readers:
            await asyncio.sleep(0)
        leader.state, leader.at = State(), {"CONTROL": 0, "REPORTS": 0}
        await leader.saver.load()
        # Nobody is behind with what was dropped.
        assert leader.saver.portions.lag.left == 0
        await leader.fold("CONTROL", 10)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        async with running(leader):
            await waiting
        assert (await stored(database))[0] == {"CONTROL": 10, "REPORTS": 0}

    asyncio.run(work())


def test_what_is_folded_is_behind_until_it_is_saved(database):
    async def work():
        leader, follower = Replica(database, leads=True), Replica(database, leads=False)
        for replica in (leader, follower):
            await replica.fold("CONTROL", 10)
            assert replica.saver.portions.lag.left == 1
        since = follower.saver.portions.lag._known_totals[0].at
        async with running(leader, follower):
            await leader.saver.wait_for_position(10)
            assert leader.saver.portions.lag.left == 0
            # It has nothing to do but to follow: no time of its own runs.
            while follower.saver.portions.lag._known_totals[0].at == since:
                await asyncio.sleep(0.01)
            follower.leads = True
            await follower.fold("CONTROL", 11)
            await follower.saver.wait_for_position(11)
            assert follower.saver.portions.lag.left == 0

    asyncio.run(work())


def test_a_follower_takes_over_without_writing_anything_twice(database):
    async def work():
        first, second = Replica(database, leads=True), Replica(database, leads=False)
        async with running(first, second):
            for replica in (first, second):
                await replica.fold("REPORTS", 5)
                await replica.fold("CONTROL", 10)
            await first.saver.wait_for_position(10)
            first.leads, second.leads = False, True
            await second.fold("CONTROL", 14)
            await second.saver.wait_for_position(14)
        assert await stored(database) == whole(14, 5)

    asyncio.run(work())


def test_who_is_behind_in_one_stream_loses_nothing_of_the_other(database):
    async def work():
        first, second = Replica(database, leads=True), Replica(database, leads=False)
        async with running(first, second):
            await first.fold("REPORTS", 8)
            await first.fold("CONTROL", 2)
            await first.saver.wait_for_position(2)
            first.leads, second.leads = False, True
            await second.fold("CONTROL", 6)
            await second.fold("REPORTS", 3)
            with pytest.raises(Refused, match="not yet at 6"):
                await second.saver.wait_for_position(6, within_s=0.3)
            assert await stored(database) == whole(2, 8)
            await second.fold("REPORTS", 9)
            await second.saver.wait_for_position(6)
        assert await stored(database) == whole(6, 9)

    asyncio.run(work())


def test_folding_waits_for_saving_but_never_for_what_cannot_be_saved_yet(database):
    async def work():
        first, second = Replica(database, leads=True), Replica(database, leads=False, backlog_limit=3)
        async with running(first, second):
            await first.fold("CONTROL", 50)
            await first.saver.wait_for_position(50)
            first.leads, second.leads = False, True
            async with asyncio.timeout(60):
                for position in range(1, 31):
                    await second.fold("REPORTS", position)
                for position in range(10, 61, 10):
                    await second.fold("CONTROL", position)
                await second.saver.wait_for_position(60)
        assert await stored(database) == whole(60, 30)

    asyncio.run(work())


def test_what_waits_is_saved_at_once_when_half_of_what_may_wait_does(database, monkeypatch):
    """Else whoever folds would stand still for as long as a transaction takes, again and again."""
    monkeypatch.setattr(snapshot_store, "SAVE_EVERY_S", 3600.0)

    async def work():
        replica = Replica(database, leads=True, backlog_limit=10)
        async with running(replica):
            await replica.fold("CONTROL", 5)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await until(lambda: replica.saver.saved_positions.get("CONTROL") == 5)
            await replica.fold("CONTROL", 6)
            await until(lambda: replica.saver.saved_positions.get("CONTROL") == 6)

    asyncio.run(work())


def test_events_that_the_read_model_does_not_need_call_for_no_save(database, monkeypatch):
    """Else a rebuild stands still for a transaction again and again, which has nothing to write."""
    monkeypatch.setattr(snapshot_store, "SAVE_EVERY_S", 3600.0)

    async def work():
        replica = Replica(database, leads=True, backlog_limit=10)
        replica.saver._projected = frozenset({str})
        async with running(replica), asyncio.timeout(60):
            for position in range(1, 60):
                await replica.fold("CONTROL", position, size=10**7)
            assert replica.saver.saved_positions == {}
            replica.saver._projected = None
            for position in range(60, 67):
                await replica.fold("CONTROL", position)
            await until(lambda: replica.saver.saved_positions.get("CONTROL") == 66)

    asyncio.run(work())


def test_a_save_takes_so_many_bytes_of_messages_however_few_they_are(database, monkeypatch):
    """Else a flood of large ones makes one save of many seconds, and everything else waits behind it."""
    monkeypatch.setattr(snapshot_store, "SAVE_EVERY_S", 3600.0)
    monkeypatch.setattr(unsaved, "BACKLOG_BYTES", 1000)
    together = []

    def counted(connection, records, events):
        together.append(len(events))
        project(connection, records, events)

    async def work():
        leader, follower = Replica(database, leads=True), Replica(database, leads=False)
        leader.saver._projection = counted
        async with running(leader, follower), asyncio.timeout(60):
            for position in range(1, 30):
                await leader.fold("CONTROL", position, size=400)
                await follower.fold("CONTROL", position, size=400)
            # One that is too large by itself is saved all the same.
            await leader.fold("CONTROL", 30, size=5000)
            await until(lambda: leader.saver.saved_positions.get("CONTROL") == 30)

    asyncio.run(work())
    assert sum(together) == 30
    # The third makes whoever folds wait.
    assert max(together) <= 3


def test_a_follower_lets_go_of_what_the_leader_has_written(database):
    async def work():
        first, second = Replica(database, leads=True), Replica(database, leads=False, backlog_limit=3)
        async with running(first, second), asyncio.timeout(60):
            await asyncio.gather(first.fold("CONTROL", 20), second.fold("CONTROL", 20))
            await asyncio.gather(first.fold("CONTROL", 40), second.fold("CONTROL", 40))

    asyncio.run(work())


async def hang_up(task):
    """Cancel at every turn of the loop until it is over, as a web server does whose client has gone."""
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)


def test_clients_that_hang_up_while_they_wait_hold_up_nobody(database):
    async def work():
        replica = Replica(database, leads=True)
        async with running(replica), asyncio.timeout(60):
            for position in range(1, 40):
                clients = [asyncio.create_task(replica.saver.wait_for_position(position)) for _ in range(20)]
                await replica.fold("CONTROL", position)
                for number, client in enumerate(clients[:-1]):
                    # At each of the first turns one is cut off, then all that are left.
                    if number % 4 == 0:
                        await asyncio.sleep(0)
                    await hang_up(client)
                await clients[-1]
        positions, sums, rows = await stored(database)
        assert (positions["CONTROL"], sums["CONTROL"], len(rows)) == (39, sum(range(40)), 39)

    asyncio.run(work())


def test_whoever_stops_it_at_any_turn_does_stop_it(database):
    """In Python 3.11 `asyncio.wait_for` swallows a cancellation that comes with what it waits for."""

    async def work(turns):
        replica = Replica(database, leads=True)
        task = asyncio.create_task(replica.saver.run())
        await replica.fold("CONTROL", 1)
        await asyncio.sleep(0.01)
        asking = asyncio.create_task(replica.saver.wait_for_position())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=60)
        await hang_up(asking)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        return bool(done)

    assert all([asyncio.run(work(turns)) for turns in range(8)])


def test_a_database_that_fails_is_tried_again_and_neither_loses_nor_doubles_anything(database, monkeypatch):
    monkeypatch.setattr(snapshot_store, "FAILED_PAUSE_S", 0.0)
    fails, failures = [True], []

    def begin(*_):
        if fails[0]:
            raise sqlite3.OperationalError("database or disk is full\nat /secret/place")

    async def work():
        replica = Replica(database, leads=True)
        async with running(replica), asyncio.timeout(60):
            sa.event.listen(database.engine, "before_cursor_execute", begin)
            await replica.fold("CONTROL", 10)
            while len(failures) < 3:
                failures.extend([database.failure] if database.failure else [])
                await asyncio.sleep(0)
            # What comes meanwhile waits with it.
            await replica.fold("REPORTS", 4)
            fails[0] = False
            await replica.saver.wait_for_position(10)
            assert replica.saver.portions.lag.left == 0
        sa.event.remove(database.engine, "before_cursor_execute", begin)
        assert database.failure == ""
        assert await stored(database) == whole(10, 4)

    asyncio.run(work())
    assert set(failures) == {"database or disk is full"}


def test_damaged_records_are_distinguished_from_a_failing_database(database):
    def broken(connection, records, events):
        raise sa.exc.IntegrityError("insert", {}, ValueError("twice"))

    async def work():
        replica = Replica(database, leads=True)
        replica.saver._projection = broken
        task = asyncio.create_task(replica.saver.run())
        await replica.fold("CONTROL", 1)
        with pytest.raises(PortionFailed, match="it cannot be saved: twice"):
            await task

    asyncio.run(work())
    assert database.failure == ""


def test_who_watches_is_told_of_a_reload_and_not_of_records(database):
    """What the former state held may be gone, and what came and went in between is in neither state."""

    async def work():
        replica, events = Replica(database, leads=True), []
        replica.saver.watch(events.append, lambda: events.append("reload"))
        await replica.saver.load()
        assert events == []
        await replica.fold("CONTROL", 3)
        await replica.saver.load()
        assert events == [{("sums", "CONTROL")}, "reload"]
        assert replica.saver.folded_position.position == 0

    asyncio.run(work())

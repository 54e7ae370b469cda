"""An event whose consequences cannot be saved, or shown: the service stands still before it, and says so."""

import asyncio
import contextlib
from dataclasses import replace

import msgspec
import pytest
import sqlalchemy as sa

from det_contracts.problems import Refused
from services.kit import snapshot_store
from services.kit.database import METADATA, Database
from services.kit.log_memory import MemoryLog
from services.kit.roots import Roots
from services.kit.rules import Call
from services.kit.snapshot_store import DatabaseSaver
from tests.fixtures.waiting import until
from tests.kit.test_standstill import (
    BROKEN,
    RETRY,
    RULES,
    Account,
    Bump,
    State,
    draft,
    running,
    say,
    skipping,
    stands,
)

ROWS = sa.Table(
    "toy_rows",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("requested", sa.Float, nullable=False),
)
UNSAVABLE = 13.0
TOO_MANY = 77.0


@pytest.fixture(autouse=True)
def nothing_breaks_the_fold():
    BROKEN.clear()


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What failed is tried again, and what came is saved, without the pauses of a service."""
    for pause in ("FAILED_PAUSE_S", "SAVE_EVERY_S"):
        monkeypatch.setattr(snapshot_store, pause, 0.02)


def follows():
    """Saves, but decides nothing: what is decided before a save fails is in the log."""
    return False


def project(connection, records, events):
    for (_, id), record in records.items():
        connection.execute(sa.delete(ROWS).where(ROWS.c.id == id))
        connection.execute(sa.insert(ROWS).values(id=id, requested=record.requested))
    for recorded in events:
        if getattr(recorded.event, "units", None) == UNSAVABLE:
            raise ValueError("no column is wide enough")
        if getattr(recorded.event, "units", None) == TOO_MANY:
            connection.execute(sa.insert(ROWS).values(id=recorded.event.trial_id, requested=None))


@contextlib.contextmanager
def opened(path):
    database = Database(f"sqlite:///{path}/toy.db")
    METADATA.create_all(database.engine)
    ROWS.metadata.create_all(database.engine)
    yield database
    database.close()


def saver_of(database, **options):
    return DatabaseSaver(database, "toy", State, **{"projection": project, **options})


def rows(database):
    return database.read_sync(lambda c: dict(c.execute(sa.select(ROWS.c.id, ROWS.c.requested)).all()))


@pytest.mark.parametrize(
    ("units", "error"),
    [(UNSAVABLE, "ValueError('no column is wide enough')"), (TOO_MANY, "NOT NULL constraint failed")],
)
def test_it_stands_before_the_one_event_among_many_that_cannot_be_saved(tmp_path, units, error):
    async def work():
        log = MemoryLog()
        await say(log, *[(1, 1.0)] * 300, (2, units), *[(3, 1.0)] * 300)
        with opened(tmp_path) as database:
            async with running(log, saver_of(database), is_leader=follows) as runner:
                await stands(runner)
                failed = runner.standstill.failed
                assert (failed.stream, failed.position) == ("CONTROL", 301)
                assert "it cannot be saved" in failed.error
                assert error in failed.error
                # What came before is there, and nothing of what came after.
                assert runner.state.accounts == {1: Account(requested=300.0)}
                assert rows(database) == {1: 300.0}
                with pytest.raises(Refused, match="cannot process event 301 of CONTROL"):
                    await runner.command(Bump(1), Call("c", 0.0), within_s=60)
            # So does the next start.
            async with running(log, saver_of(database), is_leader=follows) as runner:
                await stands(runner)
                assert runner.standstill.failed.position == 301
                await log.append(draft(skipping(301), "skip"))
                await until(lambda: rows(database) == {1: 300.0, 3: 300.0})
                assert set(runner.state.accounts) == {1, 3}
                # From here portions are as large as ever.
                assert runner._narrowing.limit == 0

    asyncio.run(work())


def test_a_retry_saves_once_the_cause_is_removed(tmp_path):
    wide = []

    def project_now(connection, records, events):
        project(connection, records, () if wide else events)

    async def work():
        log = MemoryLog()
        await say(log, (1, 1.0), (2, UNSAVABLE), (1, 1.0))
        with opened(tmp_path) as database:
            async with running(log, saver_of(database, projection=project_now)) as runner:
                await stands(runner)
                wide.append(True)
                await log.append(draft(RETRY, "retry"))
                await until(lambda: rows(database) == {1: 2.0, 2: UNSAVABLE})
                assert runner.standstill.failed is None

    asyncio.run(work())


def test_what_fails_once_only_stops_nobody(tmp_path):
    tries = []

    def once(connection, records, events):
        if not tries:
            tries.append(1)
            raise RuntimeError("the first time only")
        project(connection, records, events)

    async def work():
        log = MemoryLog()
        await say(log, *[(1, 1.0)] * 40)
        with opened(tmp_path) as database:
            async with running(log, saver_of(database, projection=once)) as runner:
                await until(lambda: rows(database) == {1: 40.0})
                await say(log, (2, 1.0))
                await until(lambda: rows(database) == {1: 40.0, 2: 1.0})
                assert runner.standstill.failed is None
                assert runner._narrowing.limit == 0

    asyncio.run(work())


def test_a_record_that_cannot_be_encoded_counts_like_a_row(tmp_path):
    """The snapshot is part of the transaction: a text that no database stores ends no service."""

    class Named(msgspec.Struct, frozen=True):
        requested: float = 0.0
        answered: int = 0
        name: str = ""

    def evolve(state, recorded):
        keys = RULES.evolve(state, recorded)
        for _, id in keys:
            account = state.accounts[id]
            name = "\ud800" if getattr(recorded.event, "units", 0) == UNSAVABLE else ""
            state.accounts[id] = Named(account.requested, account.answered, name)
        return keys

    async def work():
        log = MemoryLog()
        await say(log, (1, 1.0), (2, UNSAVABLE), (3, 1.0))
        with opened(tmp_path) as database:
            rules = replace(RULES, evolve=evolve)
            saver = DatabaseSaver(database, "toy", State)
            async with running(log, saver, rules=rules, is_leader=follows) as runner:
                await stands(runner)
                assert runner.standstill.failed.position == 2
                assert "surrogates not allowed" in runner.standstill.failed.error

    asyncio.run(work())


def test_a_failing_event_listener_stops_the_service_at_that_event(tmp_path):
    """What listens to the fold is a part of processing an event, with a database or without."""

    def listener(events):
        if any(getattr(recorded.event, "units", 0) == UNSAVABLE for recorded in events):
            raise LookupError("a page went wrong")

    async def work():
        log = MemoryLog()
        await say(log, *[(1, 1.0)] * 20, (2, UNSAVABLE), (1, 1.0))
        async with running(log) as runner:
            runner.add_listener(listener)
            await stands(runner)
            assert runner.standstill.failed.position == 21
            assert runner.standstill.failed.error == (
                "it cannot be processed: LookupError('a page went wrong')"
            )
            await log.append(draft(skipping(21), "skip"))
            await until(lambda: runner.state.accounts.get(1) == Account(21.0, 21))

    asyncio.run(work())


def test_a_database_that_is_away_is_no_fault_of_an_event(tmp_path):
    tries = []

    def away(connection, records, events):
        tries.append(1)
        if len(tries) < 3:
            raise sa.exc.OperationalError("insert", {}, Exception("the disk is full"))
        project(connection, records, events)

    async def work():
        log = MemoryLog()
        await say(log, (1, 1.0))
        with opened(tmp_path) as database:
            async with running(log, saver_of(database, projection=away)) as runner:
                await until(lambda: rows(database) == {1: 1.0})
                assert runner._narrowing.limit == 0
                assert runner.standstill.failed is None

    asyncio.run(work())


def test_a_root_whose_records_cannot_be_checked_stays_in_memory_and_is_reported(tmp_path, monkeypatch):
    """Whether a root may leave is asked of the same rules that decide; one that fails is parked there too."""
    monkeypatch.setattr("services.kit.pager.MAX_IDLE_RECORDS", 0)
    checks = []

    def react(state, key):
        if key[1] == 2 and checks:
            raise ZeroDivisionError("nobody thought of this")
        if key[1] == 2:
            checks.append(1)
        return ()

    roots = Roots(
        root_lookups={"accounts": lambda _, id: str(id)},
        members=lambda state, root: [("accounts", int(root))] if int(root) in dict(state.accounts) else [],
        is_over=lambda *_: True,
        index=lambda *_: None,
        unindex=lambda *_: None,
        reference_fields={"trial_id": "accounts"},
    )

    async def work():
        log = MemoryLog()
        rules = replace(RULES, react=react, roots=roots)
        with opened(tmp_path) as database:
            saver = DatabaseSaver(database, "toy", State, roots=roots)
            async with running(log, saver, rules=rules) as runner:
                await say(log, (1, 1.0), (2, 1.0))
                await until(lambda: checks and not runner.decider.unreacted)
                for _ in range(4):
                    await say(log, (3, 1.0))
                    await runner.wait_for_position(len(log.streams["CONTROL"]), within_s=60)
                    await saver.wait_for_position()
                await until(lambda: not runner.pager.is_loaded("1"))
                assert runner.pager.is_loaded("2")
                assert "nobody thought of this" in runner.decider.parked_records()["accounts 2"]

    asyncio.run(work())


def test_a_record_that_an_event_only_names_is_not_deleted_from_the_database(tmp_path, monkeypatch):
    """To have something decided on again, a fold may name a record that is not in memory."""
    monkeypatch.setattr("services.kit.pager.MAX_IDLE_RECORDS", 0)

    def evolve(state, recorded):
        if getattr(recorded.event, "units", 0) == UNSAVABLE:
            return [("accounts", 1)]
        return RULES.evolve(state, recorded)

    roots = Roots(
        root_lookups={"accounts": lambda _, id: str(id)},
        members=lambda state, root: [("accounts", int(root))] if int(root) in dict(state.accounts) else [],
        is_over=lambda *_: True,
        index=lambda *_: None,
        unindex=lambda *_: None,
        reference_fields={"trial_id": "accounts"},
    )

    async def work():
        log = MemoryLog()
        rules = replace(RULES, evolve=evolve, react=lambda *_: (), roots=roots)
        with opened(tmp_path) as database:
            saver = DatabaseSaver(database, "toy", State, roots=roots)
            async with running(log, saver, rules=rules, is_leader=follows) as runner:
                await say(log, (1, 1.0))
                while runner.pager.is_loaded("1") or not runner.positions["CONTROL"]:
                    await say(log, (2, 1.0))
                    await runner.wait_for_position(len(log.streams["CONTROL"]), within_s=60)
                    await saver.wait_for_position()
                await say(log, (3, UNSAVABLE))
                await runner.wait_for_position(len(log.streams["CONTROL"]), within_s=60)
                await saver.wait_for_position()
                await runner.pager.load_for([Bump(1)])
                assert runner.state.accounts[1] == Account(requested=1.0)

    asyncio.run(work())

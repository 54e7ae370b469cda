"""An administrator asks for a rebuild: the database is emptied once, and the process starts from the log."""

import asyncio

import pytest
import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.events import gateway
from services.kit.database import METADATA, SNAPSHOTS, Database
from services.kit.log_memory import MemoryLog
from services.kit.process import START_AGAIN, StartAgain, flatten_errors
from services.kit.rebuild_requests import RebuildRows
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver
from tests.fixtures.waiting import until
from tests.kit.test_standstill import RULES, Account, State, broken, draft, say, skipping

__all__ = ["broken"]
ASKED = gateway.RebuildAsked(owner="toy", reason="test")
TABLE = sa.Table("shown", sa.MetaData(), sa.Column("position", sa.Integer, primary_key=True))


def project(connection, records, events):
    for event in events:
        connection.execute(TABLE.insert().values(position=event.position))


def empty(connection):
    connection.execute(sa.delete(TABLE))


@pytest.fixture
def database(tmp_path):
    toy_database = Database(f"sqlite:///{tmp_path}/toy.db")
    METADATA.create_all(toy_database.engine)
    TABLE.create(toy_database.engine)
    yield toy_database
    toy_database.close()


class Service:
    """Replicas over one log and one database."""

    def __init__(self, database):
        self.log, self.database = MemoryLog(), database
        self.rebuilt_at_start = False

    def saver(self, is_leader=lambda: True, tables=True):
        more = {"projection": project, "clear_projection": empty} if tables else {}
        more["rebuilt_at_start"] = self.rebuilt_at_start
        return DatabaseSaver(self.database, "toy", State, is_leader=is_leader, **more)

    def run(self, is_leader=lambda: True, rules=RULES):
        saver = self.saver(is_leader)
        runner = Runner(rules, self.log, saver, is_leader=is_leader)
        return runner, saver, asyncio.create_task(runner.run())

    async def lived(self, work, **options):
        """One life of a process; returns why it ended by itself, "" if it did not."""
        runner, saver, task = self.run(**options)
        working = asyncio.create_task(work(runner, saver))
        await asyncio.wait([task, working], return_when=asyncio.FIRST_COMPLETED)
        for pending in (task, working):
            pending.cancel()
        await asyncio.wait([task, working])
        if not working.cancelled() and working.exception() is not None:
            raise working.exception()
        if task.cancelled():
            return ""
        (error,) = flatten_errors(task.exception())
        assert isinstance(error, StartAgain), error
        return str(error)

    async def settled(self, runner, saver):
        await until(lambda: runner.ready.is_set() and not runner.decider.unreacted)
        end = len(self.log.streams[subjects.CONTROL])
        await until(lambda: runner.positions["CONTROL"] >= end)
        await saver.wait_for_position(end, within_s=60)

    async def for_ever(self, runner, saver):
        await asyncio.Event().wait()

    def stored(self):
        with self.database.engine.connect() as connection:
            is_account = SNAPSHOTS.c.kind == "accounts"
            records = connection.execute(sa.select(SNAPSHOTS.c.id, SNAPSHOTS.c.body).where(is_account)).all()
            return sorted(records), sorted(connection.execute(sa.select(TABLE.c.position)).scalars())

    def spoil(self):
        """What a rebuild is for: the database says what the log does not."""
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(SNAPSHOTS).where(SNAPSHOTS.c.kind == "accounts").values(body=b'{"answered":99}')
            )
            connection.execute(sa.delete(TABLE))


def test_the_database_is_rebuilt_once_and_equal_to_the_log(database):
    async def work():
        service = Service(database)
        await say(service.log, (1, 1.0), (2, 2.0))
        assert await service.lived(service.settled) == ""
        right = service.stored()
        service.spoil()
        await service.log.append(draft(ASKED, "ask"))
        at = len(service.log.streams["CONTROL"])
        reason = await service.lived(service.for_ever)
        assert reason == f"the database is rebuilt from the log, as event {at} of CONTROL asks for"
        assert service.stored() == ([], [])
        # The next start folds everything, the request included, and serves it by that.
        assert await service.lived(service.settled) == ""
        end = len(service.log.streams["CONTROL"])
        assert service.stored() == (right[0], list(range(1, end + 1)))
        await say(service.log, (1, 1.0))
        assert await service.lived(service.settled) == ""

    asyncio.run(work())


def test_a_kill_after_the_request_was_saved_does_not_lose_it(database):
    async def work():
        service = Service(database)
        await say(service.log, (1, 1.0))
        await service.log.append(draft(ASKED, "ask"))
        assert await service.lived(service.settled) == ""
        await service.log.append(draft(ASKED, "again"))
        # It is saved as if by a process that does nothing more.
        service.rebuilt_at_start = True
        assert "is to be rebuilt" in await service.lived(service.for_ever)
        assert service.stored()[0] != []
        service.rebuilt_at_start = False
        assert "is rebuilt from the log" in await service.lived(service.for_ever)
        assert service.stored() == ([], [])
        assert await service.lived(service.settled) == ""

    asyncio.run(work())


def test_what_the_next_start_replaces_is_left_alone_and_asked_for_until_it_is_served(database):
    async def work():
        service = Service(database)
        service.rebuilt_at_start = True
        await say(service.log, (1, 1.0))
        assert await service.lived(service.settled) == ""
        await service.log.append(draft(gateway.RebuildFromCopyAsked(owner="toy", reason="test"), "ask"))
        at = len(service.log.streams["CONTROL"])
        for _ in range(2):
            reason = await service.lived(service.for_ever)
            assert reason == f"the database is to be rebuilt, as event {at} of CONTROL asks for"
            assert service.stored()[0] != []
        rows = RebuildRows("toy")
        assert database.read_sync(rows.due) == at
        with database.engine.begin() as connection:
            rows.mark_served(connection, at)
        assert await service.lived(service.settled) == ""

    asyncio.run(work())


def test_a_lost_database_is_not_rebuilt_for_what_was_asked_before(database):
    async def work():
        service = Service(database)
        await say(service.log, (1, 1.0))
        await service.log.append(draft(ASKED, "ask"))
        await service.log.append(draft(gateway.RebuildAsked(owner="others", reason="test"), "others"))
        assert await service.lived(service.settled) == ""
        await service.log.append(draft(ASKED, "again"))
        assert "is rebuilt from the log" in await service.lived(service.for_ever)

    asyncio.run(work())


def test_who_follows_starts_again_with_who_leads_and_saves_nothing_over_it(database):
    async def work():
        service = Service(database)
        await say(service.log, (1, 1.0))
        assert await service.lived(service.settled) == ""
        follower, _, task = service.run(is_leader=lambda: False)
        await until(lambda: follower.ready.is_set())
        await service.log.append(draft(ASKED, "ask"))
        await until(lambda: follower.positions["CONTROL"] == len(service.log.streams["CONTROL"]))
        assert not task.done()
        assert "as event" in await service.lived(service.for_ever)
        await asyncio.wait([task])
        (error,) = flatten_errors(task.exception())
        assert str(error) == "another replica rebuilds the database from the log"
        # Had it begun to lead in between, it would have stored changes without what they change.
        late = service.saver()
        await late.load()
        late.rebuilds.rebuilt_for -= 1
        assert not await late._save()

    asyncio.run(work())


def test_nothing_is_read_from_a_database_that_is_being_emptied(database):
    async def work():
        service = Service(database)
        saver = service.saver()
        await saver.load()
        await database.write(lambda c: saver._snapshot.delete_all(c, 7))
        with pytest.raises(Exception, match="the database is being rebuilt from the log"):
            saver.pages_blocking([("accounts", 1)], [], lambda _: False)
        with pytest.raises(Exception, match="the database is being rebuilt from the log"):
            await saver.query(lambda s, c: s.records(c, [("accounts", 1)]))

    asyncio.run(work())


def test_a_replica_that_could_fold_what_is_skipped_is_rebuilt_without_it(database, broken):
    async def work():
        service = Service(database)
        await say(service.log, (1, 1.0), (2, 3.0))
        broken.clear()
        # This release can fold event 2. Another cannot, and an administrator has it skipped.
        assert await service.lived(service.settled) == ""
        await service.log.append(draft(skipping(2), "skip"))
        assert "is rebuilt from the log" in await service.lived(service.for_ever)

        async def look(runner, saver):
            await service.settled(runner, saver)
            assert runner.state.accounts[1] == Account(1.0, 1)
            assert runner.state.accounts[2].requested == 0.0

        assert await service.lived(look) == ""

    asyncio.run(work())


def test_the_process_ends_with_a_status_of_its_own(monkeypatch):
    from services.kit import service_process

    left = []

    class Left(BaseException):
        pass

    def leave(status):
        left.append(status)
        raise Left

    monkeypatch.setattr(service_process.process, "exit_now", leave)

    async def serving():
        raise ExceptionGroup("", [StartAgain("as asked for")])

    with pytest.raises(Left):
        asyncio.run(service_process._run_until_signal(serving()))
    assert left == [START_AGAIN]

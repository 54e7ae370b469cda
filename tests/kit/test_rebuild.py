"""What is said of a database that is made again from a log that has let go of its beginning."""

import asyncio

import pytest
from structlog.testing import capture_logs

from services.kit.database import POSITIONS
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.migrate import open_database
from services.kit.rebuild import Rebuild
from services.kit.snapshot import Snapshot
from services.metrics.app import SERVICE

STREAMS = SERVICE.rules.streams
STATE = SERVICE.rules.state


def readings(rebuild):
    return {reading.name: dict(reading.values) for reading in rebuild.readings()}


def test_damage_is_said_while_the_log_is_folded():
    assert Rebuild("metrics", "").starting_note() == ""
    damaged = Rebuild("metrics", "it is cut")
    assert damaged.starting_note() == "; the database was damaged (it is cut) and is being rebuilt"
    assert readings(damaged)["database_damaged"] == {(): 1.0}


def test_how_far_a_rebuild_is_is_said_only_if_one_was_asked_for(tmp_path):
    class Journal:
        async def bounds(self, stream):
            return 1, 41

    async def started(position):
        database = open_database(f"sqlite:///{tmp_path}/{position}.db", "searcher")
        snapshot = Snapshot("searcher", STATE)
        if position:
            await database.write(lambda c: snapshot.delete_all(c, position))
        rebuild = Rebuild("searcher", "")
        await rebuild.check(Journal(), database, snapshot, ["CONTROL"])
        database.close()
        return rebuild.progress(7)

    assert asyncio.run(started(0)) == ""
    assert asyncio.run(started(40)) == "its database is rebuilt from the log: event 7 of 41"


@pytest.mark.live
@pytest.mark.parametrize("read_before", [False, True])
def test_rebuilding_reports_what_the_log_no_longer_has(broker, tmp_path, read_before):
    async def story():
        connection = await broker.connect()
        js = connection.jetstream()
        await ensure_streams(js)
        for number in range(5):
            await js.publish("reports.1.1", b"%d" % number)
        await js.purge_stream("REPORTS", seq=4)
        database = open_database(f"sqlite:///{tmp_path}/metrics.db", "metrics")
        if read_before:
            row = {"owner": "metrics", "stream": "REPORTS", "position": 3}
            await database.write(lambda c: c.execute(POSITIONS.insert(), row))
        rebuild = Rebuild("metrics", "")
        await rebuild.check(JetStreamLog(connection), database, Snapshot("metrics", STATE), STREAMS)
        database.close()
        await connection.close()
        return readings(rebuild)["database_lost_messages"]

    with capture_logs() as logged:
        lost = asyncio.run(story())
    if read_before:
        assert (lost, logged) == ({}, [])
        return
    assert lost == {("REPORTS",): 3.0}
    (line,) = logged
    assert (line["event"], line["stream"], line["messages"]) == ("database.begins_late", "REPORTS", 3)
    assert "holds nothing from before 20" in line["advice"]

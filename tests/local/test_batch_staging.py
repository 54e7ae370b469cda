"""Batches of the broker lie in memory while there is room, and nothing of them is left."""

import asyncio
import os
import shutil

import pytest

from det_contracts import subjects
from services.kit.log import Draft, Fence
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.local import batch_staging
from services.local.batch_staging import NAME, BatchStaging

STREAM = f"jetstream/ACCOUNT/streams/{subjects.CONTROL}"


@pytest.fixture
def stream(tmp_path):
    folder = tmp_path / "broker" / STREAM
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


@pytest.fixture
def staging(tmp_path, stream, memory):
    return BatchStaging(tmp_path / "broker", memory)


def test_the_folder_of_batches_leads_to_memory(staging, stream, memory):
    staging.update_links()
    place = (stream / NAME).resolve().parent
    assert place.parent == memory
    assert place.stat().st_mode & 0o777 == 0o700
    staging.update_links()
    assert [place] == list(memory.iterdir())


def test_a_batch_that_is_under_way_stays_where_it_is(staging, stream):
    (stream / NAME / "one").mkdir(parents=True)
    staging.update_links()
    assert (stream / NAME / "one").is_dir()
    (stream / NAME / "one").rmdir()
    staging.update_links()
    assert (stream / NAME).is_symlink()


def test_what_others_removed_from_memory_comes_back(staging, stream, memory):
    staging.update_links()
    for place in memory.iterdir():
        shutil.rmtree(place)
    staging.update_links()
    assert (stream / NAME).is_dir()


def test_where_memory_is_short_batches_lie_on_the_disk(staging, stream, monkeypatch):
    staging.update_links()
    monkeypatch.setattr(batch_staging, "REQUIRED_FREE_BYTES", 1 << 60)
    staging.update_links()
    assert not os.path.lexists(stream / NAME)
    staging.update_links()
    assert not os.path.lexists(stream / NAME)


def test_where_there_is_no_such_memory_nothing_is_done(tmp_path, stream):
    BatchStaging(tmp_path / "broker", tmp_path / "none").update_links()
    assert not os.path.lexists(stream / NAME)


def test_a_supervisor_that_was_killed_leaves_nothing_for_good(staging, stream, memory, tmp_path):
    staging.update_links()
    (stream / NAME).unlink()
    after = BatchStaging(tmp_path / "broker", memory)
    after.update_links()
    assert len(list(memory.iterdir())) == 1
    after.clear()
    assert list(memory.iterdir()) == []


def test_leftovers_of_deleted_logs_are_removed_by_the_next_supervisor(staging, stream, memory, tmp_path):
    staging.update_links()
    other = BatchStaging(tmp_path / "other", memory)
    other.sweep()
    assert len(list(memory.iterdir())) == 1
    shutil.rmtree(stream)
    other.sweep()
    assert list(memory.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o750])
def test_a_folder_that_others_may_write_to_or_read_is_not_used(staging, stream, memory, mode):
    staging.update_links()
    (place,) = memory.iterdir()
    place.chmod(mode)
    staging.update_links()
    assert not os.path.lexists(stream / NAME)


def test_a_link_that_somebody_put_there_is_not_followed(staging, stream, memory, tmp_path):
    staging.update_links()
    (place,) = memory.iterdir()
    shutil.rmtree(place)
    place.symlink_to(tmp_path)
    staging.update_links()
    staging.clear()
    assert not os.path.lexists(stream / NAME)
    assert stream.is_dir()


def test_nothing_is_left_at_the_end(staging, stream, memory):
    staging.update_links()
    staging.clear()
    assert list(memory.iterdir()) == []
    assert not os.path.lexists(stream / NAME)


@pytest.mark.live
def test_a_real_broker_follows_the_link_and_removes_it_when_it_starts(broker, memory):
    asyncio.run(follows_and_removes(broker, memory))


async def follows_and_removes(broker, memory):
    connection = await broker.connect()
    await ensure_streams(connection.jetstream())
    staging = BatchStaging(broker.folder, memory)
    staging.update_links()
    link = next(broker.folder.rglob(subjects.CONTROL)) / NAME
    assert link.is_symlink()
    modified_ns = link.stat().st_mtime_ns
    subject = subjects.decision("searcher")
    drafts = [Draft(subject, b"1", "one"), Draft("control.trial.1", b"2", "two")]
    end = await JetStreamLog(connection).append_batch(drafts, fence=Fence(subject, 0))
    # It was staged there, and is gone.
    assert link.stat().st_mtime_ns > modified_ns
    assert list(link.iterdir()) == []
    await connection.close()
    broker.kill9()
    broker.start()
    connection = await broker.connect()
    assert await JetStreamLog(connection).bounds(subjects.CONTROL) == (1, end)
    await connection.close()
    assert not link.is_symlink()
    staging.update_links()
    assert link.is_symlink()

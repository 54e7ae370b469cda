"""What a worker keeps on disk: whole after any interruption; what is damaged keeps it from nothing."""

import os

import msgspec
import pytest

from det_contracts.events.scheduler import AllocationAssigned, Part
from services.kit.files import damaged_copies
from worker import process
from worker.orders import MAX_REASON_LENGTH, NOTES_BYTES, POSITION_BYTES, ActedOn, Order, Orders
from worker.output_spool import Notes, SpoolReader
from worker.run import Run
from worker.shim.spool import HEADER, segment_name
from worker.slots import Inventory


@pytest.fixture
def orders(tmp_path):
    return Orders(tmp_path)


def order(id="1.a.1", position=7, **more):
    assigned = AllocationAssigned(
        allocation_id=id,
        task_id="1.a",
        experiment_id=1,
        trial_id=1,
        run=1,
        kind="TRIAL",
        reason="",
        parts=(Part(worker_id="w", slots=(0,), rank=0),),
    )
    return Order(assigned, position=position, **more)


def test_an_order_is_read_back_with_all_that_was_noted(orders):
    orders.save(order())
    assert orders.get("1.a.1") == order()
    noted = order(started_at=3.5, reported=True, killed="because", over=True)
    orders.save(noted)
    assert list(orders.all()) == [noted]


@pytest.mark.parametrize(
    "reason", ["\0" * 1000, "\N{PILE OF POO}" * 1000, "x" * 5000], ids=["escaped", "wide", "plain"]
)
def test_any_reason_has_room_in_the_notes(orders, reason):
    orders.save(order(killed=reason))
    assert orders.get("1.a.1").killed == reason[:MAX_REASON_LENGTH]
    assert (orders.folder("1.a.1") / "notes.json").stat().st_size == NOTES_BYTES


def test_a_run_starts_without_waiting_for_the_disk(orders, monkeypatch):
    """A power loss ends the run, and what may be left of these files then is read as if it were not there."""
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("flushed"))
    orders.save(order())
    folder = orders.folder("1.a.1")
    process.prepare(folder, ["true"], "/", {})
    assert process.is_prepared(folder)
    assert orders.get("1.a.1") == order()


def test_notes_need_no_free_space_and_change_no_other_file(orders, monkeypatch):
    orders.save(order())
    before = {path: path.stat().st_ino for path in orders.folder("1.a.1").iterdir()}
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("a new file would need room"))
    orders.save(order(killed="now"))
    assert {path: path.stat().st_ino for path in orders.folder("1.a.1").iterdir()} == before


def test_an_order_of_an_earlier_version_holds_its_notes_itself(orders):
    orders.folder("1.a.1").mkdir()
    old = order(started_at=2.0, killed="earlier")
    (orders.folder("1.a.1") / "order.json").write_bytes(msgspec.json.encode(old))
    assert orders.get("1.a.1") == old


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b'{"assigned": {"alloc', b"[]"], ids=["empty", "zeros", "cut", "list"]
)
def test_a_damaged_order_is_none_and_kept_for_a_look(orders, content):
    orders.save(order("1.a.1"))
    orders.save(order("1.b.1"))
    path = orders.folder("1.a.1") / "order.json"
    path.write_bytes(content)
    assert [stored_order.assigned.allocation_id for stored_order in orders.all()] == ["1.b.1"]
    (damaged_copy,) = damaged_copies(path)
    assert damaged_copy.read_bytes() == content
    orders.save(order("1.a.1"))
    assert orders.get("1.a.1") is not None


@pytest.mark.parametrize(
    "content", [b"", b"\0" * NOTES_BYTES, b'{"started_at": 1'], ids=["empty", "zeros", "cut"]
)
def test_damaged_notes_are_as_none(orders, content):
    orders.save(order(started_at=1.0))
    (orders.folder("1.a.1") / "notes.json").write_bytes(content)
    assert orders.get("1.a.1") == order(started_at=1.0)


def test_what_was_acted_on_is_written_over(orders, tmp_path):
    assert orders.acted_on() is None
    for noted in (ActedOn(2**53, 2**53), ActedOn(5, 1), ActedOn(123)):
        orders.record(noted)
        assert orders.acted_on() == noted
    assert (tmp_path / "position.json").stat().st_size == POSITION_BYTES


def test_an_earlier_version_noted_a_position_alone(orders, tmp_path):
    (tmp_path / "position.json").write_bytes(b"77".ljust(32))
    assert orders.acted_on() == ActedOn(77, 0)


@pytest.mark.parametrize("content", [b"", b"\0" * 32, b"12, 3"], ids=["empty", "zeros", "cut"])
def test_after_a_damaged_position_orders_are_read_again_from_the_oldest(orders, tmp_path, content):
    orders.record(ActedOn(100, 3))
    (tmp_path / "position.json").write_bytes(content)
    assert orders.acted_on() is None
    for id, position in (("1.a.1", 40), ("1.b.1", 60)):
        orders.save(order(id, position))
    (tmp_path / "position.json").write_bytes(content)
    assert orders.acted_on() == ActedOn(40)
    assert damaged_copies(tmp_path / "position.json")


@pytest.mark.parametrize("content", [b"", b"\0" * 50, b'{"argv": ['], ids=["empty", "zeros", "cut"])
def test_a_damaged_specification_keeps_nobody_from_starting(orders, content):
    orders.save(order())
    folder = orders.folder("1.a.1")
    (folder / "spec.json").write_bytes(content)
    run = Run(order(), orders, None, None, (), "w", None)
    assert run.ports() == set()
    # It is made again before the run starts.
    assert process.state_of(folder) == "prepared"
    assert not process.is_prepared(folder)
    (folder / "running.json").write_bytes(content)
    assert process.state_of(folder) == "lost"
    assert process.end_lost_run(folder, "gone").message == "gone"
    assert process.state_of(folder) == "exited"


def test_damaged_notes_of_the_output_begin_with_what_is_still_there(tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    line = HEADER.pack(1_000_000, 1, 5) + b"hello"
    (spool / segment_name(500)).write_bytes(line)
    (tmp_path / "shipped.json").write_bytes(b"\0" * 4096)
    reader = SpoolReader(tmp_path)
    assert reader.shipped == 500
    batch = reader.read()
    assert [spooled_line.text for spooled_line in batch.lines] == ["hello"]
    reader.acknowledge(batch)
    assert msgspec.json.decode((tmp_path / "shipped.json").read_bytes(), type=Notes).shipped == batch.end


def test_a_spool_of_zeros_is_an_error_of_the_disk(tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / segment_name(0)).write_bytes(b"\0" * 10_000)
    with pytest.raises(OSError, match="spool is damaged"):
        SpoolReader(tmp_path).read()


def test_damaged_numbers_of_slots_are_made_again(tmp_path):
    notes = tmp_path / "slots.json"
    notes.write_bytes(b"")
    assert [slot.id for slot in Inventory(notes, 2).scan()] == [0, 1]
    written = notes.stat().st_mtime_ns, notes.stat().st_ino
    assert [slot.id for slot in Inventory(notes, 2).scan()] == [0, 1]
    assert (notes.stat().st_mtime_ns, notes.stat().st_ino) == written

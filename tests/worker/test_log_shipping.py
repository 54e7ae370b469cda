"""What a run printed reaches LOGS, also from a disk that fails."""

import asyncio
import errno

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.reports import LogBatch
from tests.fixtures.lines import WorkerLog
from worker import log_shipping
from worker.log_shipping import Shipper
from worker.output_spool import SpoolReader
from worker.shim.spool import STDOUT, Spool


class Reader(SpoolReader):
    """Its disk fails as often as it is told to, by step."""

    def __init__(self, folder, failing):
        super().__init__(folder)
        self.failing = failing

    def read(self):
        self._step("read")
        return super().read()

    def acknowledge(self, batch):
        self._step("acknowledge")
        super().acknowledge(batch)

    def _step(self, name):
        if self.failing.get(name, 0):
            self.failing[name] -= 1
            raise OSError(errno.EIO, "the disk fails")


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Ships two lines of a run that is over; returns the texts in the log, by batch."""
    (tmp_path / "spool").mkdir()
    spool = Spool(str(tmp_path / "spool"))
    spool.append(STDOUT, [b"one", b"two"])
    monkeypatch.setattr(log_shipping, "SLOW_S", 0.001)

    async def work(failing):
        journal, ended, reader = WorkerLog(), asyncio.Event(), Reader(tmp_path, failing)
        ended.set()
        async with asyncio.timeout(60):
            await Shipper(journal, "1.t", "1.t.1", "w").ship(reader, ended)
        messages = journal.streams[subjects.LOGS]
        return [[line.text for line in msgspec.json.decode(m.body, type=LogBatch).lines] for m in messages]

    return lambda **failing: asyncio.run(work(failing))


@pytest.mark.parametrize("step", ["read", "acknowledge"])
def test_a_disk_that_fails_for_a_while_costs_no_line_of_an_ended_run(shipped, step):
    assert shipped(**{step: 3}) == [["one", "two"]]


def test_unreadable_output_is_reported_and_holds_up_nothing(shipped):
    ((text,),) = shipped(read=10_000)
    assert text == "the rest of the output cannot be read: [Errno 5] the disk fails"


class Counting(SpoolReader):
    """Counts how often it is asked."""

    reads = looks = 0

    def read(self):
        self.reads += 1
        return super().read()

    def end(self):
        self.looks += 1
        return super().end()


def test_output_is_read_only_when_there_is_more(tmp_path, monkeypatch):
    monkeypatch.setattr(log_shipping, "SLOW_S", 0.001)
    (tmp_path / "spool").mkdir()
    spool = Spool(str(tmp_path / "spool"))

    async def work():
        journal, ended, reader = WorkerLog(), asyncio.Event(), Counting(tmp_path)
        shipping = asyncio.create_task(Shipper(journal, "1.t", "1.t.1", "w").ship(reader, ended))
        messages = journal.streams[subjects.LOGS]
        reads = []
        async with asyncio.timeout(60):
            for number in (1, 2):
                spool.append(STDOUT, [b"line"])
                while len(messages) < number or reader.looks < 20 * number:
                    await asyncio.sleep(0.001)
                reads.append(reader.reads)
            ended.set()
            await shipping
        return reads

    first, second = asyncio.run(work())
    # The lines, and once more to see that nothing is left.
    assert (first <= 3, second - first <= 2) == (True, True)

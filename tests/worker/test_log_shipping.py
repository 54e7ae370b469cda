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
        found = journal.streams[subjects.LOGS]
        return [[line.text for line in msgspec.json.decode(m.body, type=LogBatch).lines] for m in found]

    return lambda **failing: asyncio.run(work(failing))


@pytest.mark.parametrize("step", ["read", "acknowledge"])
def test_a_disk_that_fails_for_a_while_costs_no_line_of_an_ended_run(shipped, step):
    assert shipped(**{step: 3}) == [["one", "two"]]


def test_what_cannot_be_read_at_all_is_told_and_holds_up_nothing(shipped):
    ((told,),) = shipped(read=10_000)
    assert told == "the rest of the output cannot be read: [Errno 5] the disk fails"

"""Which of the waiting reports go out together, and that none is lost when what sends them fails."""

import asyncio
import logging
import os

import msgspec
import pytest

from det_contracts.reports import ReportBatch
from determined import ClusterInfo, TrialInfo
from determined.transport import outbox
from determined.transport.bus import BusTransport
from determined.transport.bus_thread import BusThread
from determined.transport.outbox import BATCH_REPORTS, BATCH_VALUES
from determined.transport.protocol import MetricReport
from determined.transport.refusals import TooLarge


class Thread(BusThread):
    """A thread without a broker: it keeps what it is given, and fails as it is told to."""

    def __init__(self):
        super().__init__([], None, "_INBOX")
        self.failures = []
        self.batches = []

    async def _connect(self):
        await asyncio.Event().wait()

    async def wait_for_news(self, subject, body, within_s, hurry):
        await asyncio.Event().wait()

    async def store(self, subject, body, id):
        if not subject.startswith("reports."):
            raise TooLarge("8 MB")
        if self.failures:
            failure, stored = self.failures.pop(0)
            if stored:
                self._keep(body, id)
            raise failure
        self._keep(body, id)

    def _keep(self, body, id):
        if id not in dict(self.batches):
            self.batches.append((id, msgspec.json.decode(body, type=ReportBatch)))

    def steps(self):
        """Of all reports that are stored, in order."""
        return [step for _, batch in self.batches for series in batch.series for step in series.steps]


@pytest.fixture
def thread():
    thread = Thread()
    yield thread
    thread.stop()
    thread._loop.close()


@pytest.fixture
def transport(thread):
    return made(thread)


def made(thread):
    own = TrialInfo(1, 1, 1, {}, {"searcher": {"metric": "loss"}}, 0, 1, False)
    info = ClusterInfo("http://x", "c", "a", [0], "1.t", "1.t.1", "s", "TRIAL", trial_info=own)
    return BusTransport(info, thread)


def report(step, metrics=None):
    return MetricReport("training", step, {"loss": 1.0} if metrics is None else metrics)


def waiting(transport, metrics):
    transport._outbox._waiting.append((0.0, report(1, metrics)))


class Interrupted(dict):
    """Metrics at whose size another thread's report comes in between."""

    def __init__(self, transport):
        super().__init__(loss=1.0)
        self._transport = transport

    def __len__(self):
        waiting(self._transport, {"loss": 2.0})
        return 1


def test_reports_may_come_while_a_batch_is_chosen(transport):
    for _ in range(3):
        waiting(transport, Interrupted(transport))
    assert transport._outbox._fitting() == 3
    assert len(transport._outbox._waiting) == 6


def test_a_batch_ends_by_reports(transport):
    for _ in range(BATCH_REPORTS + 5):
        waiting(transport, {"loss": 1.0})
    assert transport._outbox._fitting() == BATCH_REPORTS


def test_a_batch_ends_by_values(transport):
    for _ in range(3):
        waiting(transport, dict.fromkeys(range(BATCH_VALUES // 2 + 1), 1.0))
    assert transport._outbox._fitting() == 1


def test_what_comes_while_a_message_is_stored_waits_for_its_neighbours_unless_it_is_waited_for(
    thread, transport, monkeypatch
):
    monkeypatch.setattr(outbox, "GATHER_S", 1000.0)
    keep = thread._keep

    def and_another(body, id):
        keep(body, id)
        if len(thread.batches) == 1:
            transport.report(report(2))
            # The first report's `flush` may say only now that it waits.
            thread.soon(transport._outbox._news.set)

    monkeypatch.setattr(thread, "_keep", and_another)
    transport.start()
    transport.report(report(1))
    transport.flush()
    for step in range(3, 7):
        transport.report(report(step))
    transport.flush()
    assert [batch.series[0].steps for _, batch in thread.batches] == [[1], [2, 3, 4, 5, 6]]


@pytest.mark.parametrize("stored", [False, True])
def test_an_unexpected_failure_is_logged_once_and_loses_no_report(thread, transport, caplog, stored):
    thread.failures = [(ValueError("no such luck"), stored)] * 3
    transport.start()
    for step in range(1, 4):
        transport.report(report(step))
    transport.flush()
    transport.report(report(4))
    transport.close()
    assert thread.steps() == [1, 2, 3, 4]
    # asyncio may tell of what an earlier test left behind.
    ours = [record for record in caplog.records if record.name == "determined.transport"]
    errors = [record for record in ours if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "sending reports failed and is restarted" in errors[0].message
    assert "no such luck" in caplog.text
    assert "Traceback" in caplog.text


def test_a_failure_while_a_batch_is_chosen_loses_no_report(thread, transport, monkeypatch, caplog):
    fitting, failures = transport._outbox._fitting, [IndexError("deque mutated")]

    def fail_once():
        if failures:
            raise failures.pop()
        return fitting()

    monkeypatch.setattr(transport._outbox, "_fitting", fail_once)
    transport.start()
    transport.report(report(1))
    transport.close()
    assert thread.steps() == [1]
    assert "deque mutated" in caplog.text


def test_a_report_that_cannot_be_written_is_refused_alone(thread, transport):
    transport.start()
    transport.report(report(1))
    transport.report(MetricReport("lone \ud800", 2, {"loss": 1.0}))
    transport.report(report(3))
    with pytest.raises(RuntimeError, match="metrics at 2 steps cannot be sent: UnicodeEncodeError"):
        transport.close()
    assert thread.steps() == [1, 3]


def test_of_reports_that_are_too_large_together_each_is_sent_alone(thread, transport):
    thread.failures = [(TooLarge("8 MB"), False), (TooLarge("8 MB"), False)]
    transport.start()
    for step in (1, 2, 3):
        transport.report(report(step))
    with pytest.raises(RuntimeError, match="metrics at 1 steps are too large to be sent"):
        transport.close()
    assert thread.steps() == [2, 3]
    assert [batch.number for _, batch in thread.batches] == [1, 2]


def test_a_fact_that_cannot_be_sent_is_warned_of(thread, transport, caplog):
    transport.start()
    transport.set_status("x")
    transport.report(report(1))
    transport.close()
    assert "sending the status failed and is skipped: 8 MB" in caplog.text


def test_two_processes_of_a_run_do_not_count_as_one(thread):
    for step in (1, 2):
        later = Thread()
        transport = made(later)
        transport.start()
        transport.report(report(step))
        transport.close()
        thread.batches += later.batches
    assert thread.steps() == [1, 2]
    assert len({id for id, _ in thread.batches}) == 2


def test_waiting_ends_when_the_thread_has_ended(thread, transport):
    transport.start()
    thread.stop()
    for act in (lambda: transport.report(report(1)), transport.flush, transport.close):
        with pytest.raises(RuntimeError, match="does not run in this process"):
            act()
    with pytest.raises(RuntimeError, match="does not run in this process"):
        transport.best_validation()


def test_a_forked_copy_of_a_script_may_end(thread, transport):
    transport.start()
    thread.failures = [(ValueError("not yet"), False)] * 4
    transport.report(report(1))
    child = os.fork()
    if not child:
        status = 1
        try:
            transport.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    transport.close()
    assert thread.steps() == [1]

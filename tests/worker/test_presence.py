"""Of two workers with one id one is refused, whichever comes second and however close they are."""

import asyncio

import pytest

from det_contracts import codec, subjects
from det_contracts.events.scheduler import WorkerLost
from det_contracts.events.worker import WorkerLeft, WorkerRegistered
from services.kit.log import Draft, OutcomeUnknown
from services.kit.log_memory import MemoryLog
from tests.fixtures.intake import admitting
from worker.identity import Identity
from worker.presence import IdTaken, Presence

FIRST = Identity("w", "folder-1", "host-1")
SECOND = Identity("w", "folder-2", "host-2")


class Hosts:
    """Workers that share a log."""

    def __init__(self):
        self.log = MemoryLog()

    def worker(self, me, log=None):
        return Presence(me, "default", "10.0.0.1", log or self.log)

    def register(self, *workers):
        async def all_at_once():
            made = (one.register((), (), 0) for one in workers)
            async with admitting(self.log):
                return await asyncio.gather(*made, return_exceptions=True)

        return asyncio.run(all_at_once())

    def state(self, event, id):
        body = codec.encode(event, id=id, actor="test", at=1.0)
        asyncio.run(self.log.append(Draft(codec.subject_of(event), body, id)))

    def registered(self):
        found = [m for m in self.log.streams[subjects.CONTROL] if m.subject.endswith(".registered")]
        return [codec.decode(m.body, m.position).event for m in found]


@pytest.fixture
def hosts():
    return Hosts()


def test_a_second_worker_is_refused_and_told_of_the_first(hosts):
    assert hosts.register(hosts.worker(FIRST)) == [None]
    (refusal,) = hosts.register(hosts.worker(SECOND))
    assert isinstance(refusal, IdTaken)
    for part in ("the worker id 'w' is taken", "on host host-1 (address 10.0.0.1)", "STEADFAST_WORKER_ID"):
        assert part in str(refusal)
    assert [e.instance for e in hosts.registered()] == ["folder-1"]


def test_of_two_that_begin_together_one_is_refused(hosts):
    outcomes = hosts.register(hosts.worker(FIRST), hosts.worker(SECOND))
    assert sorted(map(type, outcomes), key=str) == [type(None), IdTaken]
    assert len(hosts.registered()) == 1


def test_a_worker_that_was_killed_is_back_at_once(hosts):
    assert hosts.register(hosts.worker(FIRST)) == [None]
    assert hosts.register(hosts.worker(FIRST)) == [None]
    assert len({e.session for e in hosts.registered()}) == 2


def test_a_copy_of_its_folder_on_another_host_is_refused(hosts):
    hosts.register(hosts.worker(FIRST))
    (refusal,) = hosts.register(hosts.worker(Identity("w", "folder-1", "host-2")))
    assert isinstance(refusal, IdTaken)


@pytest.mark.parametrize("end", ["left", "lost"])
def test_the_id_of_one_that_went_is_free(hosts, end):
    first = hosts.worker(FIRST)
    hosts.register(first)
    gone = WorkerLeft("w", first.session) if end == "left" else WorkerLost("w", "silent")
    hosts.state(gone, "gone")
    assert hosts.register(hosts.worker(SECOND)) == [None]
    # Who was given up and is back finds that somebody took over.
    (refusal,) = hosts.register(first)
    assert isinstance(refusal, IdTaken)


@pytest.mark.parametrize("end", ["left", "lost"])
def test_an_end_of_an_earlier_session_frees_nothing(hosts, end):
    first = hosts.worker(FIRST)
    hosts.register(first)
    gone = WorkerLeft("w", first.session) if end == "left" else WorkerLost("w", "silent")
    hosts.state(gone, "gone")
    hosts.register(first)
    (refusal,) = hosts.register(hosts.worker(SECOND))
    assert isinstance(refusal, IdTaken)


def test_a_worker_of_an_earlier_version_is_believed(hosts):
    old = WorkerRegistered(
        worker_id="w",
        session="s",
        pool="default",
        address="",
        version="0",
        slots=(),
        reads_after=0,
        running=(),
    )
    hosts.state(old, "old")
    assert hosts.register(hosts.worker(FIRST)) == [None]


class NoAnswers(MemoryLog):
    """Stores what it is given, and does not say so the first time."""

    silent = True

    async def append(self, draft):
        position = await super().append(draft)
        if self.silent:
            self.silent = False
            raise OutcomeUnknown("no answer")
        return position


def test_a_registration_whose_answer_is_lost_is_stored_once(hosts):
    hosts.log = NoAnswers()
    worker = hosts.worker(FIRST)
    assert hosts.register(worker) == [None]
    assert [e.session for e in hosts.registered()] == [worker.session]
    assert worker.position == hosts.log._last["control.worker.w.registered"].position

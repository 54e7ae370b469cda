"""Of two workers with one id one is refused, whichever comes second and however close they are."""

import asyncio

import pytest

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded
from det_contracts.events.scheduler import WorkerLost
from det_contracts.events.worker import AllocationExited, WorkerLeft, WorkerRegistered, is_different_worker
from det_contracts.orders import WorkerOrders
from det_contracts.script_queries import Holder
from services.catalogue.domain import State as Shown
from services.catalogue.domain import evolve as show
from services.intake.admission import admit
from services.kit.log import NotStored, Stored
from services.kit.log_memory import MemoryLog
from services.kit.settings import BadSettings
from services.kit.testing import Fold
from services.scheduler.app import RULES
from services.scheduler.script_answers import holder_answer
from worker.fact_outbox import draft
from worker.identity import Identity
from worker.registration import IdTaken, Presence, check_offer
from worker.sessions import Sessions
from worker.settings import WorkerSettings

FIRST = Identity("w", "folder-1", "host-1")
SECOND = Identity("w", "folder-2", "host-2")


class Hosts:
    """Workers that share a log, and what follows from it."""

    def __init__(self, home):
        self.log = MemoryLog()
        self._home = home

    def worker(self, me, asks=False):
        holder = self._holder if asks else _silence
        return Presence(me, "default", f"at-{me.host}", self.log, Sessions(self._home), holder=holder)

    async def _holder(self):
        return holder_answer(self.scheduler_state(), "w")

    def register(self, *workers):
        async def all_at_once():
            made = (worker.register((), (), 0) for worker in workers)
            return await asyncio.gather(*made, return_exceptions=True)

        return asyncio.run(all_at_once())

    def events(self):
        return [codec.decode(m.body, m.position).event for m in self.log.streams[subjects.WITNESS]]

    def scheduler_state(self, *more):
        """The scheduler's state, after what is in the log and some more."""
        fold = Fold(RULES)
        fold.apply(*self.events(), *more)
        return fold.state


async def _silence():
    return None


@pytest.fixture
def hosts(tmp_path):
    return Hosts(tmp_path)


def orders_of(state):
    """What the orders for the id would say."""
    worker = state.workers["w"]
    return WorkerOrders(
        worker_id="w",
        position=1,
        session=worker.session,
        presence=worker.presence,
        host=worker.host,
        address=worker.address,
        refused=worker.refused,
        allocations=(),
    )


def test_a_second_worker_learns_of_the_first_before_it_registers(hosts):
    assert hosts.register(hosts.worker(FIRST, asks=True)) == [None]
    (refusal,) = hosts.register(hosts.worker(SECOND, asks=True))
    assert isinstance(refusal, IdTaken)
    for part in ("the worker id 'w' is taken", "on host host-1 (address at-host-1)", "STEADFAST_WORKER_ID"):
        assert part in str(refusal)
    assert [e.instance for e in hosts.events()] == ["folder-1"]


def test_of_two_that_begin_together_the_first_has_the_id_and_the_other_hears_so(hosts):
    first, second = hosts.worker(FIRST), hosts.worker(SECOND)
    assert hosts.register(first, second) == [None, None]
    orders = orders_of(hosts.scheduler_state())
    assert orders.session == first.session
    first.raise_if_refused(orders)
    with pytest.raises(IdTaken, match="on host host-1"):
        second.raise_if_refused(orders)


def test_who_is_refused_changes_nothing_that_is_shown(hosts):
    hosts.register(hosts.worker(FIRST), hosts.worker(SECOND))
    state = Shown()
    for position, event in enumerate(hosts.events(), 1):
        list(show(state, Recorded(position, event, f"e{position}", "test", 1.0)))
    assert [(worker.instance, worker.address) for worker in state.workers.values()] == [
        ("folder-1", "at-host-1")
    ]


def test_a_worker_that_was_killed_is_back_at_once(hosts):
    workers = [hosts.worker(FIRST, asks=True) for _ in range(2)]
    assert [hosts.register(worker) for worker in workers] == [[None], [None]]
    assert orders_of(hosts.scheduler_state()).session == workers[1].session


def test_a_copy_of_its_folder_on_another_host_is_refused(hosts):
    hosts.register(hosts.worker(FIRST))
    (refusal,) = hosts.register(hosts.worker(Identity("w", "folder-1", "host-2"), asks=True))
    assert isinstance(refusal, IdTaken)


@pytest.mark.parametrize("end", ["left", "lost"])
def test_the_id_of_one_that_went_is_free(hosts, end):
    first, second = hosts.worker(FIRST), hosts.worker(SECOND)
    hosts.register(first)
    gone = WorkerLeft("w", first.session) if end == "left" else WorkerLost("w", "silent")
    before = hosts.events()
    hosts.register(second)
    fold = Fold(RULES)
    fold.apply(*before, gone, hosts.events()[-1])
    assert fold.state.workers["w"].session == second.session
    assert fold.state.workers["w"].presence == "here"


def test_an_end_of_an_earlier_session_frees_nothing(hosts):
    first = hosts.worker(FIRST)
    hosts.register(first)
    earlier = WorkerLeft("w", first.session)
    hosts.register(first)
    assert hosts.scheduler_state(earlier).workers["w"].presence == "here"


def test_a_worker_of_an_earlier_version_is_believed():
    new = WorkerRegistered(
        worker_id="w",
        instance="folder-1",
        host="host-1",
        session="s",
        pool="default",
        address="",
        version="0",
        slots=(),
        reads_after=0,
        running=(),
    )
    assert not is_different_worker(new, "", "")
    assert not is_different_worker(new, "folder-1", "")
    assert is_different_worker(new, "folder-1", "host-2")
    assert is_different_worker(new, "folder-2", "")


class NoAnswers(MemoryLog):
    """Stores what it is given, and does not say so the first time."""

    silent = True

    async def append(self, draft):
        position = await super().append(draft)
        if self.silent:
            self.silent = False
            raise NotStored("no answer")
        return position


def test_a_registration_whose_answer_is_lost_is_stored_once(hosts):
    hosts.log = NoAnswers()
    worker = hosts.worker(FIRST)
    assert hosts.register(worker) == [None]
    assert [e.session for e in hosts.events()] == [worker.session]


def test_nobody_so_far():
    assert holder_answer(Fold(RULES).state, "w") is None
    assert Holder(True, "a", "b", "c").here


@pytest.mark.parametrize(
    "setting", [{"worker_pool": "p" * 600}, {"worker_address": "a\0b"}, {"worker_slots": 5000}]
)
def test_oversized_offers_of_a_worker_are_reported_at_start(setting):
    with pytest.raises(BadSettings, match=r"STEADFAST_WORKER_.*at most"):
        check_offer(WorkerSettings(**setting))
    check_offer(WorkerSettings(worker_pool="p" * 500, worker_slots=4096))


def test_an_exit_with_a_book_for_a_reason_is_admitted_with_its_beginning():
    exited = AllocationExited(worker_id="w", allocation_id="1.a.1", message="no\0" + "x" * 50_000)
    made = draft("w", exited)
    stated = codec.decode_event(
        codec.decode_envelope(admit(Stored(made.subject, 1, made.body), 1.0).draft.body)
    )
    assert stated.message == "no\u2400" + "x" * 9_997

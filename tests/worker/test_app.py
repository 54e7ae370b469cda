"""A worker that starts again: what it says first of the runs that it finds."""

import asyncio
import fcntl
import os
import signal
import subprocess

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.events.scheduler import AllocationAssigned, Part, WorkerLost
from det_contracts.events.worker import AllocationExited, AllocationStarted, WorkerLeft, WorkerRegistered
from det_contracts.ids import container_id
from det_contracts.orders import Briefing, Gang, Standing, WorkerOrders
from det_contracts.reports import LogBatch
from det_contracts.script_queries import Holder
from services.kit.log import NeverStored, NotStored
from tests.fixtures.intake import admitting
from tests.fixtures.lines import WorkerLog
from tests.worker.app_host import DEADLINE_S, Host, Silent, Told
from worker import app, fact_outbox, hidden_values, process, run_setup
from worker.identity import Identity
from worker.orders import ActedOn
from worker.registration import IdTaken


@pytest.fixture
def host(tmp_path, monkeypatch):
    made = Host(tmp_path)
    monkeypatch.setattr(app, "JetStreamLog", lambda connection: made.log)
    monkeypatch.setattr(app, "OrderFeed", lambda connection, worker_id: Told(made))
    return made


def exited(events):
    return [e for e in events if isinstance(e, AllocationExited)]


def never_again(folder):
    """A run whose shim and command are gone, and left no word."""
    process.prepare(folder, ["true"], folder, {"PATH": os.environ["PATH"]})
    gone = process.ProcessIdentity(2**22 + 1, 1)
    (folder / "running.json").write_bytes(msgspec.json.encode(process.Running(gone, gone)))
    assert process.state_of(folder) == "lost"


def test_what_went_away_with_the_machine_is_not_said_to_run(host):
    never_again(host.order("lost", (0,)))
    events = asyncio.run(host.work_until(exited))
    assert isinstance(events[0], WorkerRegistered)
    assert (events[0].running, events[0].address) == ((), "10.0.0.1")
    assert exited(events)[0].allocation_id == "lost"


@pytest.mark.live
def test_surviving_runs_continue_unless_their_slots_disappeared(host, runs):
    for name, slots in (("kept", (0, 1)), ("cut", (1, 2))):
        folder = host.order(name, slots)
        process.prepare(folder, ["sleep", "600"], folder, {"PATH": os.environ["PATH"]})
        process.start(folder)
    try:
        events = asyncio.run(host.work_until(exited))
        assert isinstance(events[0], WorkerRegistered)
        assert set(events[0].running) == {"kept", "cut"}
        assert [(e.allocation_id, e.exit_code) for e in exited(events)] == [("cut", 137)]
        assert process.state_of(host.orders.folder("kept")) == "running"
    finally:
        process.kill(host.orders.folder("kept"))
        runs.ended(host.orders.folder("kept"))


@pytest.mark.live
def test_what_ends_with_its_worker_has_not_failed(host):
    folder = host.order("running", (0,))
    process.prepare(folder, ["sleep", "600"], folder, {"PATH": os.environ["PATH"]})
    process.start(folder)

    async def story():
        worker = app.Worker(host.settings, host.me, Silent())
        run = asyncio.ensure_future(worker.run())
        async with admitting(host.log), asyncio.timeout(DEADLINE_S):
            while not any(isinstance(e, AllocationStarted) for e in await host.events()):
                await asyncio.sleep(0.01)
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            await worker.shut_down()
            assert process.state_of(folder) == "exited"
            while not isinstance((left := await host.events())[-1], WorkerLeft):
                await asyncio.sleep(0.01)

        def twice(events):
            return sum(isinstance(e, WorkerRegistered) for e in events) == 2

        return left, await host.work_until(twice)

    left, after = asyncio.run(story())
    assert isinstance(left[-1], WorkerLeft)
    assert [e for e in after if isinstance(e, WorkerRegistered)][-1].running == ()
    assert not exited(after)


@pytest.mark.live
def test_the_log_of_a_trial_begins_with_where_it_runs(host):
    folder = host.order("first", (0,))
    order = host.orders.get("first")
    host.orders.save(msgspec.structs.replace(order, started_at=0.0))
    process.prepare(folder, ["echo", "a line"], folder, {"PATH": os.environ["PATH"]})
    hidden_values.save(folder, {}, ())
    asyncio.run(host.work_until(exited))
    batches = [msgspec.json.decode(m.body, type=LogBatch) for m in host.log.streams[subjects.LOGS]]
    lines = [line.text for batch in batches for line in batch.lines]
    where = f"(container {container_id('first', 'w')}) on agent w"
    assert lines == [f"New trial runner in {where}", "a line"]


@pytest.mark.live
def test_what_a_worker_says_before_a_run_starts_is_in_its_log(host, runs, monkeypatch):
    async def pulls(self, folder, report_progress):
        await report_progress("pulling image mine:1")

    monkeypatch.setattr(run_setup.Preparer, "fetch_image", pulls)
    order = standing("new")
    mounts = [{"host_path": "/tmp", "container_path": "/data"}]
    config = order.briefing.config | {"environment": {"image": "mine:1"}, "bind_mounts": mounts}
    briefing = msgspec.structs.replace(order.briefing, config=config)
    host.extra_allocations = (msgspec.structs.replace(order, briefing=briefing),)
    asyncio.run(host.work_until(exited))
    batches = [msgspec.json.decode(m.body, type=LogBatch) for m in host.log.streams[subjects.LOGS]]
    lines = [line.text for batch in batches for line in batch.lines]
    assert any("environment.image mine:1 is not used" in line for line in lines), lines
    assert any("/tmp is not mounted at /data" in line for line in lines)
    assert "pulling image mine:1" in lines


@pytest.mark.live
def test_a_kill_during_the_start_of_the_shim_is_carried_out(host, runs):
    folder = host.order("early", (0,), killed="enough")
    process.prepare(folder, ["true"], folder, {"PATH": os.environ["PATH"]})
    # A shim has claimed the run, and has not yet said who it is.
    shim = subprocess.Popen(["sleep", "600"])
    begun = process.host_processes.started(shim.pid)
    claim = os.open(folder / process.LOCK, os.O_WRONLY | os.O_CREAT)
    fcntl.flock(claim, fcntl.LOCK_EX)

    identified = []

    def announced(events):
        # Once: when it is over its folder goes.
        if not identified and any(isinstance(e, AllocationStarted) for e in events):
            identified.append(True)
            me = process.ProcessIdentity(shim.pid, begun)
            (folder / "running.json.new").write_bytes(msgspec.json.encode(process.Running(me, me)))
            (folder / "running.json.new").rename(folder / "running.json")
        return shim.poll() is not None

    try:
        asyncio.run(host.work_until(announced))
        assert shim.returncode == -signal.SIGQUIT
    finally:
        shim.kill()
        shim.wait()
        os.close(claim)


def test_given_up_for_lost_it_registers_again(host):
    def registrations(events):
        return [e for e in events if isinstance(e, WorkerRegistered)]

    async def story():
        await host.work_until(registrations)
        await host.state(WorkerLost("w", "silent"))
        return await host.work_until(lambda events: len(registrations(events)) == 2)

    events = asyncio.run(story())
    assert not [e for e in events if isinstance(e, AllocationStarted)]
    assert len({e.session for e in registrations(events)}) == 2


def test_answers_to_its_own_earlier_registrations_are_no_sign_of_another_worker(host):
    """Registered twice while nobody answered, it hears of both, one after the other."""

    def answer(session):
        return WorkerOrders(worker_id="w", position=1, session=session, presence="here", allocations=())

    async def story():
        worker = app.Worker(host.settings, host.me, Silent())
        sessions = []
        for _ in range(3):
            await worker._register((), ())
            sessions.append(worker._presence.session)
            if len(sessions) == 1:
                assert await worker._answers_latest_registration(answer(sessions[0]))
                worker._orders_current.set()
        assert not await worker._answers_latest_registration(answer(sessions[1]))
        assert await worker._answers_latest_registration(answer(sessions[2]))
        assert worker._presence.session == sessions[2]

    asyncio.run(story())


def test_a_registration_of_the_process_before_it_that_comes_late_ends_no_worker(host):
    """It was under way when its process was killed, and was stored after that of the next one."""

    def answer(session):
        return WorkerOrders(worker_id="w", position=1, session=session, presence="here", allocations=())

    async def registered():
        worker = app.Worker(host.settings, host.me, Silent())
        await worker._register((), ())
        return worker, worker._presence.session

    async def story():
        _, killed = await registered()
        worker, session = await registered()
        assert await worker._answers_latest_registration(answer(session))
        worker._orders_current.set()
        assert not await worker._answers_latest_registration(answer(killed))
        # Whoever reads the log takes the killed one's for the newest, so it says again what it runs.
        assert worker._presence.session not in (killed, session)
        with pytest.raises(IdTaken, match="copy of this one's folder"):
            await worker._answers_latest_registration(answer("of a copy"))

    asyncio.run(story())


@pytest.mark.live
def test_a_device_that_fails_takes_only_its_own_runs_along(host, runs, monkeypatch):
    for name, slots in (("kept", (0,)), ("cut", (1,))):
        folder = host.order(name, slots)
        process.prepare(folder, ["sleep", "600"], folder, {"PATH": os.environ["PATH"]})
        process.start(folder)
    monkeypatch.setattr(app, "SLOT_CHECK_S", 0.02)
    from worker import slots as inventory

    there = [inventory.Slot(0, "cuda", "GPU-a", "L4"), inventory.Slot(1, "cuda", "GPU-b", "L4")]
    monkeypatch.setattr(inventory, "gpus", lambda visible: tuple(there))
    object.__setattr__(host.settings, "worker_gpu", True)

    def started(events):
        if sum(isinstance(e, AllocationStarted) for e in events) == 2 and len(there) == 2:
            there.pop()
        return exited(events)

    try:
        events = asyncio.run(host.work_until(started))
        first, second = [e for e in events if isinstance(e, WorkerRegistered)]
        assert [slot.uuid for slot in first.slots] == ["GPU-a", "GPU-b"]
        assert [slot.uuid for slot in second.slots] == ["GPU-a"]
        assert events.index(second) < events.index(exited(events)[0])
        assert exited(events)[0].allocation_id == "cut"
        assert process.state_of(host.orders.folder("kept")) == "running"
    finally:
        process.kill(host.orders.folder("kept"))
        runs.ended(host.orders.folder("kept"))


SECOND = Identity("w", "another folder", "another host")


def registration(me, session):
    return WorkerRegistered(
        worker_id="w",
        instance=me.instance,
        host=me.host,
        session=session,
        pool="default",
        address="10.0.0.2",
        version="1",
        slots=(),
        reads_after=0,
        running=(),
    )


async def failure(host, then=None):
    """What a worker ends with; `then` happens once it has registered."""
    worker = app.Worker(host.settings, host.me, Silent())
    run = asyncio.ensure_future(worker.run())
    async with admitting(host.log), asyncio.timeout(DEADLINE_S):
        while then is not None and not any(isinstance(e, AllocationStarted) for e in await host.events()):
            await asyncio.sleep(0.01)
        while then is not None and not host.orders.acted_on().sequence:
            await asyncio.sleep(0.01)
        if then is not None:
            await host.state(then)
        await asyncio.wait([run])
    for task in worker._runs.tasks:
        task.cancel()
    await asyncio.gather(*worker._runs.tasks, return_exceptions=True)
    return [str(error) for error in app.process.flatten_errors(run.exception())]


def running(host, name="mine", **more):
    folder = host.order(name, (0,), **more)
    process.prepare(folder, ["sleep", "600"], folder, {"PATH": os.environ["PATH"]})
    process.start(folder)
    return folder


@pytest.mark.live
def test_whose_id_another_one_has_ends_with_all_that_it_runs(host, runs):
    folder = running(host)
    host.holder = Holder(True, SECOND.instance, SECOND.host, "10.0.0.2")
    (error,) = asyncio.run(failure(host))
    assert "the worker id 'w' is taken: another worker has it, on host another host" in error
    assert runs.ended(folder).code == 137
    assert error.startswith(host.orders.get("mine").killed)


@pytest.mark.live
def test_a_copy_of_its_folder_that_registers_ends_the_first(host, runs):
    folder = running(host)
    (error,) = asyncio.run(failure(host, registration(host.me, "of a copy")))
    assert "with a copy of this one's folder" in error
    assert runs.ended(folder).code == 137


@pytest.mark.live
@pytest.mark.parametrize("while_it_was_down", [True, False])
def test_given_up_for_lost_it_ends_what_may_start_elsewhere(host, runs, while_it_was_down):
    """Before it says again that it is in touch, by which its shims would let it run."""
    unfenced, _ = running(host, "kept"), running(host, "fenced", fence_s=600.0)

    async def story():
        def both_started(events):
            return sum(isinstance(e, AllocationStarted) for e in events) == 2

        await host.work_until(both_started)
        lost = asyncio.ensure_future(host.state(WorkerLost("w", "silent")))
        if while_it_was_down:
            await lost
        events = await host.work_until(exited)
        await lost
        return events

    events = asyncio.run(story())
    assert [(e.allocation_id, e.exit_code) for e in exited(events)] == [("fenced", 137)]
    assert process.state_of(unfenced) == "running"
    process.kill(unfenced)
    runs.ended(unfenced)


def standing(allocation, **more):
    """A part of an allocation on the worker, as it may be told of it."""
    parts = (Part("w", (0,), 0),)
    assigned = AllocationAssigned(
        allocation_id=allocation, task_id="t", kind="COMMAND", parts=parts, experiment_id=0, run=1, reason=""
    )
    config = {"entrypoint": "true", "resources": {}, "environment": {}}
    briefing = Briefing(assigned=assigned, user="ann", config=config, gang=Gang(("10.0.0.1",), (1,)))
    return Standing(**{"allocation_id": allocation, "position": 1, "briefing": briefing} | more)


@pytest.mark.live
def test_an_order_received_twice_runs_once(host, runs):
    host.extra_allocations = (standing("new"),)
    events = asyncio.run(host.work_until(exited))
    assert [e.allocation_id for e in events if isinstance(e, AllocationStarted)] == ["new"]
    assert [(e.allocation_id, e.exit_code) for e in exited(events)] == [("new", 0)]
    # Told once more, by whom it is not over yet for.
    host.log = WorkerLog()
    again = asyncio.run(host.work_until(lambda events: host.orders.acted_on().sequence == host.sequence > 0))
    assert not [e for e in again if isinstance(e, AllocationStarted | AllocationExited)]


@pytest.mark.parametrize(
    ("expected", "message", "lost"),
    [
        ({"end": "killed by ann"}, "ended before it was started: killed by ann", False),
        ({"briefing": None, "problem": "the log has nothing"}, "the log has nothing", False),
        ({"briefing": None}, "its order is gone", True),
    ],
)
def test_what_it_cannot_run_is_given_back_at_once(host, expected, message, lost):
    host.extra_allocations = (standing("new", **expected),)
    events = asyncio.run(host.work_until(exited))
    assert [(e.message, e.lost, e.exit_code) for e in exited(events)] == [(message, lost, None)]
    assert not [e for e in events if isinstance(e, AllocationStarted)]


class FullLog(WorkerLog):
    """Refuses the end of a run at first."""

    def __init__(self):
        super().__init__()
        self.refusals = [NotStored("WITNESS is full"), NeverStored("not permitted")]

    async def append(self, draft):
        if b"allocation_exited" in draft.body and self.refusals:
            raise self.refusals.pop()
        return await super().append(draft)


def test_what_it_cannot_run_is_given_back_when_the_log_takes_it(host, monkeypatch):
    monkeypatch.setattr(fact_outbox, "RETRY_S", 0)
    host.log = FullLog()
    host.extra_allocations = (standing("new", briefing=None),)
    events = asyncio.run(host.work_until(exited))
    assert [(e.allocation_id, e.lost) for e in exited(events)] == [("new", True)]
    assert not host.log.refusals


def test_of_what_another_lost_it_says_nothing(host):
    host.extra_allocations = (standing("anothers", end="out of touch", lost=True),)
    events = asyncio.run(host.work_until(lambda events: host.sequence and host.orders.acted_on().sequence))
    assert not exited(events)


@pytest.mark.live
@pytest.mark.parametrize("given_anew", [False, True], ids=["a free id", "an id that was given again"])
def test_runs_ordered_by_a_lost_log_are_ended(host, runs, given_anew):
    """The cluster's log was restored from an older copy: what the worker heard since never happened."""
    folder = host.order("mine", (0,), position=5000)
    host.orders.record(ActedOn(5000, 40))
    process.prepare(folder, ["sleep", "600"], folder, {"PATH": os.environ["PATH"]})
    process.start(folder)
    orders_now = host.orders_now

    def of_the_restored_log():
        orders = orders_now()
        if orders is None:
            return None
        others = tuple(allocation for allocation in orders.allocations if allocation.allocation_id != "mine")
        exits = [m for m in host.log.streams[subjects.CONTROL] if b"allocation_exited" in m.body]
        mine = (standing("mine", position=2),) if given_anew and not exits else ()
        return msgspec.structs.replace(orders, allocations=(*others, *mine))

    host.orders_now = of_the_restored_log
    try:
        events = asyncio.run(host.work_until(lambda events: not folder.exists()))
        assert host.orders.acted_on().position < 5000
        # Where the id was given again, its end is that of the other run, which was not started beside it.
        assert [(e.allocation_id, e.exit_code) for e in exited(events)] == [("mine", 137)]
    finally:
        if folder.exists():
            process.kill(folder)


@pytest.mark.live
def test_runs_that_are_not_ordered_are_ended(host, runs):
    folder = running(host)
    host.over.add("mine")
    asyncio.run(host.work_until(lambda events: not folder.exists()))
    assert process.state_of(folder) == "prepared"

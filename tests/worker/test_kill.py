"""Orders to kill that come at awkward times: before the start, while a run is made ready, over a restart."""

import asyncio
import os
import threading

import msgspec
import pytest

from det_contracts import codec, subjects
from det_contracts.events import scheduler, worker
from det_contracts.orders import Briefing, Gang
from det_contracts.reports import LogBatch
from tests.fixtures.lines import WorkerLog
from worker import process, run
from worker.orders import Order, Orders
from worker.warm.warm_start import ColdStart

ASSIGNED = scheduler.AllocationAssigned(
    allocation_id="1.r.1",
    task_id="1.r",
    kind="TRIAL",
    parts=(scheduler.Part("w", (0,), 0),),
    trial_id=1,
    experiment_id=1,
    run=1,
    reason="a slot is free",
)


TOLD = Briefing(assigned=ASSIGNED, user="ann", config={}, gang=Gang(("10.0.0.1",), (1,)))


class Preparer:
    """Lays out nothing; calls back while it is at it."""

    def __init__(self, meanwhile=lambda: None):
        self.meanwhile = meanwhile

    def prepare(self, *_):
        self.meanwhile()
        return ColdStart("nothing is laid out"), []

    async def fetch_image(self, *_):
        pass


@pytest.fixture
def started(monkeypatch):
    """Folders whose processes were started; nothing really is."""
    folders = []

    monkeypatch.setattr(run, "share_of", lambda *_: None)
    monkeypatch.setattr(process, "start", folders.append)
    return folders


def facts(journal):
    return [codec.decode(m.body, m.position).event for m in journal.streams[subjects.WITNESS]]


def lines(journal):
    batches = [msgspec.json.decode(m.body, type=LogBatch) for m in journal.streams[subjects.LOGS]]
    return [(line.level, line.text) for batch in batches for line in batch.lines]


def execute(tmp_path, order, before=None, preparer=None, turn=None, log_lines=None, templates=None):
    log_lines = [] if log_lines is None else log_lines

    """One run from its order to its report; returns what was stated of it."""

    async def at_once(_):
        return None

    async def live():
        journal, orders = WorkerLog(), Orders(tmp_path)
        orders.save(order)
        made_ready = preparer or Preparer()
        trial_run = run.Run(order, orders, journal, made_ready, (), "w", turn or at_once, templates)
        loop = asyncio.get_running_loop()
        if preparer is not None:
            preparer.meanwhile = lambda: asyncio.run_coroutine_threadsafe(
                trial_run.kill("a whim"), loop
            ).result(60)
        work = asyncio.ensure_future(trial_run.execute(set()))
        if before is not None:
            await before(trial_run)
        await asyncio.wait_for(work, 60)
        log_lines.extend(lines(journal))
        return facts(journal), orders.get(ASSIGNED.allocation_id)

    return asyncio.run(live())


def expect_never_started(stated, started):
    (exited,) = stated
    assert isinstance(exited, worker.AllocationExited)
    assert exited.exit_code is None
    assert exited.message == "ended before it was started: a whim"
    assert started == []


def test_killed_while_it_is_made_ready_it_never_starts(tmp_path, started):
    log_lines = []
    stated, order = execute(
        tmp_path, Order(ASSIGNED, briefing=TOLD), preparer=Preparer(), log_lines=log_lines
    )
    expect_never_started(stated, started)
    # Whoever reads the log looks for errors, and this is none.
    assert log_lines == [("INFO", "ended before it was started: a whim")]
    assert (order.killed, order.reported) == ("a whim", True)


def test_killed_while_it_waits_for_its_turn_it_never_starts(tmp_path, started):
    async def never(_):
        await asyncio.Event().wait()

    async def kill(trial_run):
        await asyncio.sleep(0)
        await trial_run.kill("a whim")

    stated, _ = execute(tmp_path, Order(ASSIGNED, briefing=TOLD), before=kill, turn=never)
    expect_never_started(stated, started)


def test_killed_while_its_template_is_made_it_never_starts(tmp_path, started):
    class Templates:
        """One is being made for ever."""

        def __init__(self):
            self.waited_for = asyncio.Event()

        async def wait_for_template(self, _):
            self.waited_for.set()
            await asyncio.Event().wait()

    templates = Templates()

    async def kill(trial_run):
        await templates.waited_for.wait()
        await trial_run.kill("a whim")

    stated, _ = execute(tmp_path, Order(ASSIGNED, briefing=TOLD), before=kill, templates=templates)
    expect_never_started(stated, started)


def test_an_order_to_kill_outlives_the_worker(tmp_path, started):
    stated, _ = execute(tmp_path, Order(ASSIGNED, killed="a whim", briefing=TOLD))
    expect_never_started(stated, started)


def test_a_limit_that_a_run_has_exceeded_is_told_also_after_a_restart_of_its_worker(tmp_path, monkeypatch):
    """It counts as a failure, unlike a run that somebody killed."""
    kills, log_lines = [], []
    ended = process.Exit(code=137, signal=9)
    monkeypatch.setattr(process, "state_of", lambda _: "exited" if kills else "running")
    monkeypatch.setattr(process, "kill", lambda folder: kills.append(folder) or True)
    monkeypatch.setattr(process, "read_exit", lambda _: ended)
    order = Order(ASSIGNED, started_at=1.0, exceeded="too much", briefing=TOLD)
    stated, order = execute(tmp_path, order, log_lines=log_lines)
    assert (stated[-1].exit_code, stated[-1].message, stated[-1].lost) == (137, "too much", False)
    assert kills
    assert ("ERROR", "too much") in log_lines
    assert order.exceeded == "too much"


@pytest.mark.parametrize("left", ["spec.json", "hidden.json"])
def test_what_an_earlier_process_prepared_in_part_is_prepared_again(tmp_path, started, left):
    """Its log would show what it must not, or nothing could be started."""
    folder = Orders(tmp_path).folder(ASSIGNED.allocation_id)
    folder.mkdir()
    (folder / left).write_text("{}")
    prepared = []

    class Records(Preparer):
        def prepare(self, *_):
            prepared.append(True)
            return super().prepare()

    execute(tmp_path, Order(ASSIGNED, briefing=TOLD), preparer=Records())
    assert prepared


def test_a_kill_waits_for_none_of_those_that_are_being_prepared(tmp_path, started):
    """The store that a configuration names may answer as late as it likes."""
    gate, waiting = threading.Event(), []
    common_threads = min(32, (os.cpu_count() or 1) + 4)

    def wait():
        waiting.append(1)
        gate.wait(60)

    async def live():
        journal, orders = WorkerLog(), Orders(tmp_path)
        runs = []
        for number in range(common_threads + 1):
            assigned = msgspec.structs.replace(ASSIGNED, allocation_id=f"1.r.{number}")
            order = Order(assigned, position=7, briefing=msgspec.structs.replace(TOLD, assigned=assigned))
            orders.save(order)
            runs.append(run.Run(order, orders, journal, Preparer(wait), (), "w", lambda _: asyncio.sleep(0)))
        tasks = [asyncio.create_task(each.execute(set())) for each in runs]
        while len(waiting) < common_threads:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(30):
                for each in runs:
                    await each.kill("a whim")
        finally:
            gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(live())
    assert started == []

"""The watchdog of the event loop: what it tells of a loop that stands still, and what it forgives."""

import asyncio
import contextlib
import os
import threading
import time

import pytest
from structlog.testing import capture_logs

from services.kit import loop_watchdog, processor_waits
from services.kit.loop_watchdog import LoopWatchdog, watch_loop
from services.kit.processor_waits import MachineTime, waited_s
from tests.fixtures.own_time import set_time
from tests.fixtures.waiting import until

LIMIT_S = 0.2
ME, OTHER = 17, 18
TRIES = 5


def stand_still(seconds):
    time.sleep(seconds)


def hold_the_interpreter():
    """One call in C that lets no other thread run meanwhile, and takes a second or so."""
    return sum(range(50_000_000))


async def told_of(work, stalls):
    """Do `work` on a watched loop until so many stalls are told, one after the other; returns what was."""
    counted = []
    with capture_logs() as logged, watch_loop(LIMIT_S, counted.append):
        for number in range(1, stalls + 1):
            for _ in range(TRIES):
                # The watchdog has looked, and looks again.
                await asyncio.sleep(LIMIT_S)
                work()
                # What the machine was to blame for is not told, on a busy one: then it is done again.
                with contextlib.suppress(TimeoutError):
                    await until(lambda number=number: len(counted) == number, within_s=10)
                    break
            assert len(counted) == number
    reported = [line for line in logged if line["event"] == "loop.blocked"]
    assert [line["seconds"] for line in reported] == [pytest.approx(s, abs=0.001) for s in counted]
    return reported


def test_each_stall_is_logged_once_with_its_stack():
    for line in asyncio.run(told_of(lambda: stand_still(10 * LIMIT_S), stalls=2)):
        assert line["log_level"] == "warning"
        assert line["seconds"] > LIMIT_S
        assert line["over"]
        # Innermost last, as everywhere.
        assert line["stack"].splitlines()[-1].strip() == "time.sleep(seconds)"
        assert "in stand_still" in line["stack"]


def test_who_keeps_all_other_threads_from_running_is_seen_too():
    # Which of the threads that wait for the interpreter gets it first is a matter of chance.
    stacks = (asyncio.run(told_of(hold_the_interpreter, stalls=1))[0]["stack"] for _ in range(TRIES))
    assert any("in hold_the_interpreter" in stack for stack in stacks)


def test_a_loop_that_never_resumes_is_logged_too(monkeypatch):
    monkeypatch.setattr("services.kit.loop_watchdog.REPORT_AFTER_S", 2 * LIMIT_S)
    reported = threading.Event()

    async def work():
        with watch_loop(LIMIT_S, lambda seconds: reported.set()):
            await asyncio.sleep(LIMIT_S)
            # Nothing but the watchdog ends this.
            assert reported.wait(60)

    with capture_logs() as logged:
        asyncio.run(work())
    (line,) = [line for line in logged if line["event"] == "loop.blocked"]
    assert not line["over"]


def test_a_stall_caused_by_the_machine_is_not_logged():
    """How long it waited for a processor is known in full only at its end."""

    async def work():
        watchdog = LoopWatchdog(LIMIT_S, lambda seconds: None)
        watchdog._update_stall(2 * LIMIT_S, over=False)
        watchdog._update_stall(LIMIT_S / 2, over=True)
        return watchdog._is_reported

    assert not asyncio.run(work())


def test_ticks_delayed_by_the_machine_are_excused_together(monkeypatch):
    """On a busy machine this thread may look once for several of them, and again when one more is overdue."""
    clock, taken = [100.0], [0.0]
    set_time(monkeypatch, loop_watchdog, monotonic=lambda: clock[0])
    monkeypatch.setattr(MachineTime, "taken_s", lambda self, late_s: taken[0])
    received = []

    def pass_time(watchdog, seconds):
        clock[0] += seconds
        watchdog._next.cancel()
        watchdog._tick()

    async def work():
        watchdog = LoopWatchdog(LIMIT_S, lambda seconds: None)
        monkeypatch.setattr(watchdog, "_report", lambda seconds, over, stack: received.append(seconds))
        watchdog._tick()
        watchdog._check()
        for _ in range(3):
            pass_time(watchdog, 10 * LIMIT_S)
        clock[0] += 9 * LIMIT_S
        taken[0] = 39 * LIMIT_S
        watchdog._check()
        pass_time(watchdog, LIMIT_S)
        taken[0] = LIMIT_S
        watchdog._check()
        assert received == []

        # Its own share is told, but for no longer than one of them lasted.
        for _ in range(3):
            pass_time(watchdog, 10 * LIMIT_S)
        taken[0] = 15 * LIMIT_S
        watchdog._check()
        await until(lambda: bool(received))
        assert received == [pytest.approx(9.75 * LIMIT_S)]
        watchdog.stop()

    asyncio.run(work())


def test_a_limit_of_0_starts_nothing():
    async def work():
        before = set(threading.enumerate())
        with watch_loop(0.0, lambda seconds: None):
            assert set(threading.enumerate()) <= before

    asyncio.run(work())


def test_it_ends_with_its_loop():
    async def work():
        watchdog = LoopWatchdog(0.01, lambda seconds: None)
        watchdog.start()
        return watchdog

    watchdog = asyncio.run(work())
    watchdog._thread.join(60)
    assert not watchdog._thread.is_alive()


class Tasks:
    """A folder like /proc/self/task, whose threads have waited for as long as one says."""

    def __init__(self, folder):
        self.folder = folder

    def waited(self, **by_thread):
        for name, seconds in by_thread.items():
            thread = {"me": ME, "other": OTHER, "asker": threading.get_native_id()}[name]
            (self.folder / str(thread)).mkdir(exist_ok=True)
            (self.folder / str(thread) / "schedstat").write_text(f"5 {int(seconds * 1e9)} 3\n")


@pytest.fixture
def tasks(tmp_path):
    tasks = Tasks(tmp_path)
    tasks.waited(me=3.0, other=1.0, asker=2.0)
    return tasks


@pytest.fixture
def work(monkeypatch):
    """Seconds that this process has worked, as one sets them."""
    worked = [10.0]
    set_time(monkeypatch, processor_waits, process_time=lambda: worked[0])
    return worked


@pytest.fixture
def machine(tasks, work):
    machine = MachineTime(ME, tasks.folder)
    machine.start_interval()
    return machine


def test_each_wait_for_a_processor_is_excused(machine, tasks):
    tasks.waited(me=3.5)
    assert machine.taken_s(late_s=0) == pytest.approx(0.5)
    assert machine.taken_s(late_s=0) == 0
    tasks.waited(me=4.5)
    assert machine.taken_s(late_s=0) == pytest.approx(1.0)


def test_a_wait_of_another_thread_is_excused_as_it_may_have_held_the_gil(machine, tasks):
    machine.taken_s(late_s=0)
    tasks.waited(me=3.25, other=1.5)
    assert machine.taken_s(late_s=0) == pytest.approx(0.75)


def test_a_watchdog_that_is_late_because_this_process_worked_excuses_nothing(machine, work):
    work[0] += 2.0
    assert machine.taken_s(late_s=2.0) == 0


def test_a_watchdog_that_is_late_for_want_of_a_processor_excuses_nothing(machine, tasks):
    tasks.waited(asker=4.0)
    assert machine.taken_s(late_s=2.0) == pytest.approx(0)


def test_a_wait_that_is_counted_in_two_places_is_excused_once(machine, tasks, work):
    tasks.waited(me=6.0)
    work[0] += 1.0
    assert machine.taken_s(late_s=4.0) == 3.0


def test_time_in_which_the_process_was_stopped_is_excused(machine, tasks, work):
    tasks.waited(asker=2.5)
    work[0] += 0.5
    assert machine.taken_s(late_s=3.0) == pytest.approx(2.0)


def test_without_wait_statistics_the_lateness_of_the_watchdog_is_excused(tmp_path, work):
    machine = MachineTime(ME, tmp_path / "none")
    machine.start_interval()
    work[0] += 0.25
    assert machine.taken_s(late_s=1.0) == pytest.approx(0.75)


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="this kernel does not count waits")
def test_this_kernel_is_understood(tasks):
    assert waited_s(threading.get_native_id()) >= 0
    assert waited_s(ME, tasks.folder) == 3.0
    assert waited_s(99, tasks.folder) is None


def test_no_look_is_under_way_once_watching_has_ended():
    """It would renew the switch that ends a process, which whoever stops watching disarms next."""
    looking, release = threading.Event(), threading.Event()
    done = []

    def look(_):
        looking.set()
        release.wait()
        done.append(None)

    async def work():
        with watch_loop(0.1, lambda _: None, look):
            await until(looking.is_set)
            threading.Timer(0.05, release.set).start()
        assert done

    asyncio.run(work())

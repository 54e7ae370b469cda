"""Commands decided ahead of the log: many share a round, each in a view of what those before it lead to."""

import asyncio
import contextlib

import pytest

from det_contracts import codec, subjects
from det_contracts.commands import ChangeJob, ConfigurePools, StopTask, SubmitTask
from det_contracts.events import Decision
from det_contracts.events.scheduler import PoolSettings
from det_contracts.problems import Refused
from services.kit.log_memory import MemoryLog
from services.kit.overlay import view_of
from services.kit.rules import Call, dump, every_key
from services.kit.sorted_keys import SortedKeys
from services.scheduler.app import RULES
from services.scheduler.domain import State
from tests.kit.running_runner import running_runner
from tests.scheduler.test_index import Chance

TASKS = 200


def running(log):
    # A round takes as much as it may, however busy the machine is.
    return running_runner(log, RULES, stopwatch=lambda: 0.0)


def submitted(number):
    return SubmitTask(
        task_id=f"task-{number}", kind="COMMAND", name="", config={}, slots=1, pool="default", user="admin"
    )


def events(log):
    return [codec.decode(m.body, m.position).event for m in log.streams[subjects.CONTROL]]


def test_many_commands_share_a_round_and_see_each_other():
    async def work():
        log = MemoryLog()
        async with running(log) as runner:

            async def submit(number, command):
                with contextlib.suppress(Refused):
                    await runner.command(command, Call(f"c{number}", 0.0))

            pools = ConfigurePools(pools={"other": PoolSettings(scheduler="priority")}, user="admin")
            commands = [pools, *map(submitted, range(TASKS))]
            # Each of these needs what one before it in the same round has led to.
            commands += [StopTask(task_id=f"task-{n}", user="admin") for n in range(0, TASKS, 2)]
            commands += [
                ChangeJob(experiment_id=-n, resource_pool="other", priority=7, user="admin")
                for n in range(1, TASKS + 1, 3)
            ]
            await asyncio.gather(*(submit(*numbered_command) for numbered_command in enumerate(commands)))
            stored_events = events(log)
            assert sum(isinstance(event, Decision) for event in stored_events) <= 6
            numbers = [task.number for task in runner.state.tasks.values()]
            assert sorted(numbers) == list(range(1, TASKS + 1))
            waiting = runner.state.index.books["other"].waiting.values()
            moved = {int(request.group) for request in waiting}
            assert moved == {-n for n in range(1, TASKS + 1, 3) if n % 2 == 0}
            assert {runner.state.jobs[id].priority for id in moved} == {7}

    asyncio.run(work())


class Watched:
    """Rules with another fold."""

    def __init__(self, rules, evolve):
        self._rules, self.evolve = rules, evolve

    def __getattr__(self, name):
        return getattr(self._rules, name)


def whole(state):
    """Its records, its indexes, and who holds what."""
    indexes = {name: list(index) for name, index in vars(state).items() if isinstance(index, SortedKeys)}
    jobs = range(-5, 8)
    occupancy = {
        id: (sorted(state.occupancy.held_on(id)), state.occupancy.taken_on(id)) for id in state.workers
    }
    of_jobs = {job: sorted(state.occupancy.of_job(job)) for job in jobs}
    return dump(state), indexes, occupancy, of_jobs, sorted(state.occupancy.unconfirmed_lost)


def again(state):
    """The same records, in another state."""
    tables = {kind: dict(getattr(state, kind)) for kind in {kind for kind, _ in every_key(state)}}
    return State(**tables)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_folded_into_a_view_leaves_the_state_below_as_it_was(cluster, seed, monkeypatch):
    """Random events, forty at a time: the view of the state before them shows the state behind them."""
    folded = []

    def evolve(state, recorded):
        folded.append(recorded)
        return RULES.evolve(state, recorded)

    monkeypatch.setattr(cluster.fold, "rules", Watched(RULES, evolve))
    for pool in ("default", "b"):
        cluster.pool(pool, scheduler="priority")
    cluster.worker("w1", 4)
    chance = Chance(cluster, seed)
    for _ in range(6):
        below, start = again(cluster.state), len(folded)
        view, before = view_of(below), whole(below)
        for _ in range(40):
            chance.step()
        for recorded in folded[start:]:
            list(RULES.evolve(view, recorded))
        assert whole(view) == whole(cluster.state)
        assert whole(below) == before


def test_a_view_has_no_books():
    """Who rules by them is told so, and ruled on as the first of a round, where there are some."""
    with pytest.raises(AttributeError, match="no 'books' ahead of the log"):
        _ = view_of(State()).index.books

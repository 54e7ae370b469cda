"""One seed from beginning to end: trouble, then peace, then the checks that only the end permits."""

import asyncio
import gc
import math
import re
from dataclasses import replace

from det_contracts import codec, subjects
from det_contracts.events.worker import WorkerRegistered
from det_contracts.queries import Waiting
from det_contracts.states import OVER
from services.kit.rules import every_key
from services.scheduler.queries import CALLED
from tests.simulation import story
from tests.simulation.clients import clients
from tests.simulation.fake_database import FakeSnapshot, states_differ
from tests.simulation.faults import inject_faults, repair_all
from tests.simulation.loop import VirtualLoop, run
from tests.simulation.plan import plan_of
from tests.simulation.users import administrator, people
from tests.simulation.violation import Violation
from tests.simulation.virtual_time import virtual_time
from tests.simulation.world import World

TROUBLE_S = 1500.0
PEACE_S = 30_000.0
STILL_S = 90.0
"""Longer than any timeout: a lost run that its host must end is given up after 65 s."""
MOST_STEPS = 5000
"""Far more than experiments of this size can lead to."""


class Result:
    """The result of a seed."""

    def __init__(self, world):
        self.seed = world.plan.seed
        self.steps = world.steps
        self.counts = dict(world.ledger.counts)
        self.violation = world.failure
        self.story = story.tell(world, world.failure) if world.failure is not None else ""
        self.lines = "\n".join(text for *_, text in world.story.lines)
        self.messages = world.disk.streams[subjects.CONTROL]
        self.log = [message.body for message in self.messages]


def simulate(seed, off=(), steps=300, also=(), **worse):
    """Run one seed; the same seed always gives the same log.

    `also` is additional trouble: functions of (world, chance). `worse` overrides fields of the plan.
    """
    worlds = []

    async def main():
        loop = asyncio.get_running_loop()
        plan = replace(plan_of(seed, off, steps), **worse)
        with virtual_time(loop.time, plan):
            world = World(plan)
            worlds.append(world)
            try:
                await _live(world, also)
            except Violation as violation:
                world.fail(violation)
            finally:
                world.resume()

    # A seed leaves little garbage, and constant collection takes a tenth of its time.
    gc.disable()
    try:
        run(main())
        result = Result(worlds[0])
        # Break reference cycles by hand, so that nothing is left to collect.
        vars(worlds.pop()).clear()
    finally:
        gc.enable()
    return result


async def _live(world, also):
    loop = asyncio.get_running_loop()
    world.start()
    broken = [loop.create_task(own(world, world.plan.chance("own"))) for own in also]
    tasks = [loop.create_task(people(world)), loop.create_task(inject_faults(world, broken))]
    tasks += [loop.create_task(coroutine) for coroutine in (administrator(world), *clients(world))]
    chance = world.plan.chance("looks")
    while world.steps < world.plan.steps and loop.time() < TROUBLE_S:
        await world.sleep(5.0)
        world.compare(chance.choice(world.replicas))
        world.check_records(chance.choice(list(world.rules)))
        if chance.random() < 0.15:
            world.check_answers()
    for task in [*tasks, *broken]:
        task.cancel()
    await world.sleep(0.1)
    world.tell("peace", "nothing breaks any more")
    repair_all(world)
    await come_to_rest(world)
    await ask_at_the_end(world)
    for owner in world.rules:
        for replica in world.of(owner):
            replica.count_roots()


async def come_to_rest(world, most_steps=MOST_STEPS):
    """Wait until nothing happens any more."""
    until = asyncio.get_running_loop().time() + PEACE_S
    last, still = 0, 0.0
    while still < STILL_S or world.processes or not _all_read(world):
        # A worker that has just ended is reported some time later. Until then, a pool asks for nothing,
        # however much waits.
        pauses = any(supply.retry_at for supply in world.truth["scheduler"].supplies.values())
        busy = bool(world.processes) or pauses
        await world.sleep(10.0)
        still = still + 10.0 if world.steps == last and not busy else 0.0
        last = world.steps
        if asyncio.get_running_loop().time() > until or world.steps > most_steps:
            raise Violation("it comes to rest", f"{_unfinished(world)}; processes {list(world.processes)}")


def _all_read(world):
    return all(
        at == len(world.disk.streams[stream])
        for replica in world.replicas
        if replica.rules.owner in world.rules
        for stream, at in replica.runner.positions.items()
    ) and all_is_admitted(world)


def _unfinished(world):
    return [(e.id, e.state.now) for e in world.ledger.experiments.values() if e.state.now not in OVER]


def all_is_admitted(world):
    """Whether a decision of the intake covers everything that was stated."""
    facts = world.disk.streams[subjects.WITNESS]
    return not facts or world.ledger.admitted >= len(facts)


async def ask_at_the_end(world):
    """Check a world in which nothing happens any more; raises `Violation`."""
    for replica in world.replicas:
        if not world.compare(replica):
            raise Violation("every replica reads on", f"{replica.name} is at {replica.runner.positions}")
    for owner in world.rules:
        world.check_records(owner)
    world.check_answers()
    nothing_is_left_to_decide(world)
    every_report_has_one_effect(world)
    every_living_worker_counts(world)
    every_fact_is_admitted_once(world)
    everything_is_over_or_waits(world)
    nothing_runs_that_nobody_asked_for(world)
    what_is_saved_is_the_fold(world)
    who_hung_up_left_nothing(world)
    rebuild_is_the_same(world)
    if world.failure is not None:
        raise world.failure


def nothing_is_left_to_decide(world):
    """G3: no decision is lost."""
    for owner, rules in world.rules.items():
        for key in every_key(world.truth[owner]):
            missing = rules.react(world.truth[owner], key)
            if missing:
                raise Violation("no decision is lost", f"{owner} should decide {missing}", missing[0])


def every_report_has_one_effect(world):
    """Each validation that counts was stated once."""
    for trial in world.ledger.trials.values():
        if trial.experiment.state.now == "DELETED":
            continue
        wanted = sorted(world.ledger.reports.validated.get(trial.id, ()))
        decided = sorted(world.ledger.decided.get(("validated", trial.id), ()))
        if decided != wanted:
            raise Violation("a report has one effect", f"trial {trial.id}: {decided}, reported {wanted}")


def every_fact_is_admitted_once(world):
    """An acknowledged fact is in the log once; otherwise it is damaged or came too late."""
    admitted = world.ledger.facts
    for stated in world.disk.streams[subjects.WITNESS]:
        if stated.position not in admitted and not is_refused(world, stated):
            raise Violation("every fact is admitted", f"position {stated.position}: {stated.body[:300]!r}")


def is_refused(world, stated):
    """Whether a message in WITNESS may have been refused: it is damaged, or a superseded registration."""
    try:
        event = codec.decode_event(codec.decode_envelope(stated.body))
    except codec.BadRecord:
        return True
    return isinstance(event, WorkerRegistered)


def every_living_worker_counts(world):
    """The scheduler counts every worker that lives and reaches the log, whatever it took it for before."""
    for worker in (w for w in world.workers.values() if not w.retired):
        host = world.ledger.workers.get(worker.id)
        if host is None or (host.presence, host.session) != ("here", worker.session):
            raise Violation(
                "living workers count", f"{worker.id} lives as {worker.session}, known is {host}", host
            )


def what_is_saved_is_the_fold(world):
    """What replicas would load from a database equals the truth."""
    for owner, rules in world.rules.items():
        ends = {stream: len(world.disk.streams[stream]) for stream in rules.streams}
        for shelf in world.databases(owner):
            state, positions = FakeSnapshot(rules.state).load(shelf, whole=True)
            if positions != ends:
                raise Violation("all is saved in the end", f"{owner}: {positions} of {ends}")
            if states_differ(state, world.truth[owner]):
                raise Violation("what is saved is the fold", owner)


def nothing_runs_that_nobody_asked_for(world):
    """An engine runs only what pools want, and pools know only what exists."""
    if world.engine is None:
        return
    running = [job for job in world.engine.jobs if job.alive]
    lost = [job for job in running if job.worker_id not in world.ledger.requested_workers]
    twice = len({job.worker_id for job in running}) < len(running)
    if lost or twice:
        raise Violation("nothing runs that nobody asked for", f"{lost or running}")
    back = [id for id in world.ledger.requested_workers if id in world.ledger.given_back]
    if back:
        raise Violation("what is given back goes", f"{back} are still there")
    gone = world.ledger.requested_workers.keys() - {job.worker_id for job in running}
    if gone:
        raise Violation("what is wanted comes", f"{gone} run nowhere")


def who_hung_up_left_nothing(world):
    """A gateway holds nothing for disconnected clients."""
    for gateway in world.of("gateway"):
        if left := gateway.left_behind():
            raise Violation("who hangs up leaves nothing", f"{gateway.name}: {left}")


def everything_is_over_or_waits(world):
    """Liveness: every experiment is over, paused, or waits for something unavailable, and says so."""
    ledger = world.ledger
    why = world.rules["scheduler"].answers[Waiting](world.truth["scheduler"], Waiting())
    _own_tasks_end_or_wait(ledger, why)
    for experiment in ledger.experiments.values():
        if experiment.state.now in OVER - {"DELETING"}:
            continue
        trials = [t for t in ledger.trials.values() if t.experiment is experiment and not t.over]
        waiting = [ledger.allocations[t.live] for t in trials if t.live] + [
            a
            for a in ledger.allocations.values()
            if a.kind != "TRIAL" and a.experiment_id == experiment.id and not a.outcome
        ]
        for allocation in waiting:
            _waits_with_reason(ledger, allocation, why)
        if experiment.state.now != "PAUSED" and not waiting:
            raise Violation(
                "everything that can end does",
                f"experiment {experiment.id} is {experiment.state.now} with trials {[t.id for t in trials]}",
                codec.decode(world.disk.streams[subjects.CONTROL][0].body, 1).event,
            )


def _own_tasks_end_or_wait(ledger, why):
    """Own tasks run once, and a request to stop one is obeyed."""
    for task in ledger.tasks.values():
        allocation = ledger.allocations[f"{task.task_id}.1"]
        if not allocation.outcome:
            _waits_with_reason(ledger, allocation, why)
            if task.stopped < math.inf:
                raise Violation("everything that can end does", f"{task.task_id} was stopped, but waits")


def _waits_with_reason(ledger, allocation, why):
    if allocation.parts:
        raise Violation("everything that can end does", f"{allocation} still runs")
    if not why.get(allocation.id):
        raise Violation("who waits is told why", f"{allocation.id} waits for nothing")
    others = (other for other in ledger.allocations.values() if other is not allocation)
    if any(re.search(rf"{_called(other)}\b", why[allocation.id]) for other in others):
        # It waits behind one of higher rank, which is checked by itself.
        return
    for host in ledger.workers.values():
        now = ledger.position
        free = [
            s for s in host.slots if (host.id, s) not in ledger.slots and ledger.switch_at(host.id, s, now)
        ]
        open_ = host.presence == "here" and ledger.switch_at(host.id, None, now)
        allowed = _is_allowed(ledger, allocation)
        if (
            open_
            and allowed
            and host.pool == ledger.pool_at(allocation, now)
            and len(free) >= allocation.slots
        ):
            there = f"{host.id} has {free} free: {why[allocation.id]}"
            raise Violation("who fits is placed", f"{allocation.id} needs {allocation.slots}, {there}")


def _called(allocation):
    """What the scheduler calls it to users."""
    if allocation.trial_id is None:
        return CALLED[allocation.kind]
    return f"trial {allocation.trial_id} of experiment {allocation.experiment_id}"


def _is_allowed(ledger, allocation):
    limit = ledger.job_of(allocation).max_slots.now
    if limit is not None and limit < allocation.slots:
        return False
    now = ledger.position
    live = [a for a in ledger.allocations.values() if a.parts and not a.outcome]
    for holder in ledger.holders_at(allocation, now) if allocation.slots else ():
        quota = ledger.quota_at(holder, now)
        held = sum(a.slots for a in live if holder in ledger.holders_at(a, now))
        if quota is not None and held + allocation.slots > quota:
            return False
    return True


def rebuild_is_the_same(world):
    """G4: rebuilding each service's state from nothing, stream by stream, gives the same state.

    The truth is already such a fold, in the order in which messages were stored. For readers of CONTROL alone
    it is the same, provided that no fold has changed a record that others fold, too.
    """
    decode_again = list(world.reading.decode_again(world.disk.streams[subjects.CONTROL]))
    for owner, rules in world.rules.items():
        if list(rules.streams) == [subjects.CONTROL]:
            continue
        state = rules.state()
        for stream in rules.streams:
            messages = world.disk.streams[stream]
            again = (
                decode_again
                if stream == subjects.CONTROL
                else (rules.decode[stream](m, stream) for m in messages)
            )
            for recorded in again:
                if not world.poison.has(owner, recorded):
                    tuple(rules.evolve(state, recorded))
        if states_differ(state, world.truth[owner]):
            raise Violation("a rebuild is the same", owner)


__all__ = ["Result", "VirtualLoop", "simulate"]

"""What goes wrong, and how it is repaired. `FAULTS` is the table to extend."""

import asyncio
import dataclasses

from det_contracts.events import worker as worker_events
from tests.simulation.broker import IN_FLIGHT
from tests.simulation.worker_faults import (
    _name,
    _worker,
    deaf,
    host,
    partition,
    provisioner,
    resize,
    slots,
    twin,
    worker,
)

# Each is (world, chance) -> coroutine that breaks something and repairs it, or None if there is nothing to
# break.


async def crash(world, chance):
    """One replica dies and comes back; its service's database is intact."""
    replica = chance.choice(world.replicas)
    if not replica.up:
        return
    world.fault("crash", replica.name)
    replica.crash()
    await asyncio.sleep(chance.expovariate(0.5))
    _start(world, replica)


async def instant(world, chance):
    """A replica dies a few loop turns after a message was stored: between any two of its steps."""
    replica = chance.choice(world.replicas)
    for _ in range(chance.randrange(1, 4)):
        await asyncio.shield(world.next_stored())
    for _ in range(chance.randrange(12)):
        await asyncio.sleep(0)
    if not replica.up:
        return
    world.fault("instant", replica.name)
    replica.crash()
    await asyncio.sleep(chance.expovariate(1.0))
    _start(world, replica)


async def power(world, chance):
    """All replicas of a service die, and the newest commits of its database are lost."""
    owner = chance.choice(world.owners)
    world.fault("power", owner)
    for replica in world.of(owner):
        if replica.up:
            replica.crash()
    for shelf in world.databases(owner):
        shelf.lose_newest_commits(chance)
    await asyncio.sleep(chance.expovariate(0.3))
    for replica in world.of(owner):
        _start(world, replica)


async def blackout(world, chance):
    """Every service dies."""
    world.fault("blackout", "all services")
    down = [replica for replica in world.replicas if replica.up]
    for replica in down:
        replica.crash()
    await asyncio.sleep(chance.expovariate(0.3))
    for replica in down:
        _start(world, replica)


def _start(world, replica):
    if not replica.up:
        replica.start()


async def lease(world, chance):
    """The lease moves, or two replicas hold it, or none does for a while."""
    owner = chance.choice(world.owners)
    replicas = world.of(owner)
    how = chance.choice(("both", "nobody", "next"))
    world.fault("lease", f"{owner}: {how}")
    for replica in replicas:
        replica.lead(how == "both")
    await asyncio.sleep(chance.expovariate(0.2) if how != "next" else 0.0)
    leader = chance.choice(replicas)
    for replica in replicas:
        replica.lead(replica is leader)


async def clock(world, chance):
    """One process's clock jumps."""
    replica = chance.choice(world.replicas)
    replica.ahead_s = chance.choice((-3000.0, -5.0, 0.0, 5.0, 600.0))
    world.fault("clock", f"{replica.name} is {replica.ahead_s} s ahead")
    await asyncio.sleep(60)
    replica.ahead_s = 0.0


async def full(world, chance):
    """The log accepts nothing for a while."""
    seconds = chance.choice((2.0, 8.0, 40.0))
    world.fault("full", f"the log takes nothing for {seconds} s")
    world.disk.full = True
    await asyncio.sleep(seconds)
    world.disk.full = False


async def space(world, chance):
    """The log has no space for a while, and says so."""
    seconds = chance.choice((2.0, 8.0, 40.0))
    world.fault("space", f"the log has no space for {seconds} s")
    world.disk.refuses = "insufficient storage resources available"
    await asyncio.sleep(seconds)
    world.disk.refuses = ""


async def permission(world, chance):
    """The log rejects everything from one process, and says so."""
    target = _worker(world, chance) if chance.random() < 0.5 else chance.choice(world.replicas)
    if target is None or not target.up:
        return
    world.fault("permission", f"{_name(target)} may not write for a while")
    line, line.refused = target.line, "permissions violation"
    await asyncio.sleep(chance.choice((2.0, 15.0)))
    line.refused = ""


async def leader(world, chance):
    """The brokers elect another leader: nothing is stored meanwhile."""
    disk, old = world.disk, world.disk.leader
    if old is None:
        return
    # Two of three must have what is acknowledged.
    seconds, gone = chance.choice((2.0, 10.0)), _all_keep_up(disk) and chance.random() < 0.5
    world.fault("leader", f"no leader for {seconds} s" + (", its broker is gone" if gone else ""))
    disk.leader = None
    if gone:
        disk.stop(old)
        _leave(world, old)
    await asyncio.sleep(seconds)
    disk.leader = chance.choice([server for server in disk.servers if server.lags_at is None])
    if gone:
        await asyncio.sleep(chance.expovariate(0.1))
        disk.resume(old)


def _all_keep_up(disk):
    return all(server.lags_at is None for server in disk.servers)


def _leave(world, server):
    """Move the connections of a broker to another one."""
    for participant in (*world.replicas, *world.workers.values()):
        if participant.up and participant.line.server is server:
            participant.line.move()


async def follower(world, chance):
    """One broker lags without knowing it: its readers believe that they have read everything."""
    disk = world.disk
    if disk.leader is None or not _all_keep_up(disk):
        return
    slow = chance.choice([server for server in disk.servers if server is not disk.leader])
    seconds = chance.choice((2.0, 10.0, 40.0))
    world.fault("follower", f"a broker is behind for {seconds} s")
    disk.stop(slow)
    await asyncio.sleep(seconds)
    disk.resume(slow)


async def batches(world, chance):
    """Begin as many unfinished batches as the broker allows."""
    world.fault("batches", "no further batch may be begun")
    world.disk.begin(IN_FLIGHT)


async def closed(world, chance):
    """The broker closes a process's connection for good: the process ends and is restarted."""
    target = _worker(world, chance) if chance.random() < 0.3 else chance.choice(world.replicas)
    if target is None or not target.up:
        return
    world.fault("closed", _name(target))
    target.line.cut = True
    await asyncio.sleep(0.5 * chance.random())
    if target.up:
        target.end()
    await asyncio.sleep(1 + chance.random())
    if not target.up:
        target.start()


async def stopped(world, chance):
    """A process is stopped, as by SIGSTOP, and continues some time later as if nothing had happened."""
    target = _worker(world, chance) if chance.random() < 0.3 else chance.choice(world.replicas)
    if target is None or not target.up or target.process.stopped:
        return
    process, seconds = target.process, chance.choice((0.5, 5.0, 20.0, 60.0))
    world.fault("stopped", f"{_name(target)} for {seconds} s")
    process.stop()
    await asyncio.sleep(min(seconds, LEASE_S))
    led = getattr(target, "leads", False)
    if led and seconds > LEASE_S:
        _take_over(world, target, chance)
    await asyncio.sleep(max(seconds - LEASE_S, 0))
    process.resume()
    if led and seconds > LEASE_S:
        # It learns that it has lost its lease when it tries to renew it.
        await asyncio.sleep(0.6 * chance.random())
        target.lead(all(other is target or not other.leads for other in world.of(target.rules.owner)))


LEASE_S = 2.0


def _take_over(world, replica, chance):
    others = [r for r in world.of(replica.rules.owner) if r is not replica and r.up and not r.process.stopped]
    if others:
        chance.choice(others).lead(True)


FAULTS = {
    "crash": (6, crash),
    "instant": (10, instant),
    "power": (3, power),
    "blackout": (1, blackout),
    "lease": (8, lease),
    "clock": (3, clock),
    "full": (2, full),
    "space": (2, space),
    "permission": (2, permission),
    "leader": (3, leader),
    "follower": (3, follower),
    "batches": (1, batches),
    "closed": (2, closed),
    "worker": (5, worker),
    "host": (4, host),
    "partition": (5, partition),
    "deaf": (2, deaf),
    "resize": (3, resize),
    "slots": (3, slots),
    "twin": (2, twin),
    "stopped": (4, stopped),
    "provisioner": (3, provisioner),
}
"""Name to (weight, fault)."""


async def inject_faults(world, running):
    """Break things at random, several at once if they overlap; `running` holds the faults under way."""
    chance = world.plan.chance("faults")
    table = {name: row for name, row in FAULTS.items() if name not in world.plan.off}
    weights = [often for often, _ in table.values()]
    while table:
        await asyncio.sleep(chance.expovariate(1 / world.plan.fault_every_s))
        name = chance.choices(list(table), weights)[0]
        task = asyncio.get_running_loop().create_task(table[name][1](world, chance))
        task.add_done_callback(lambda done: _on_fault_done(world, done))
        running.append(task)


def _on_fault_done(world, task):
    if not task.cancelled() and task.exception() is not None:
        world.fail(task.exception())


def repair_all(world):
    """Repair everything, and break nothing from now on."""
    plan = dataclasses.replace(world.plan, losses=0.0, repeats=0.0, stalls=0.0)
    world.plan_now = plan
    _repair_log(world.disk)
    for owner in world.owners:
        for number, replica in enumerate(world.of(owner)):
            replica.ahead_s = 0.0
            replica.lead(number == 0)
            replica.process.resume()
            _start(world, replica)
            replica.line.heal(plan)
    for repaired_provisioner in world.provisioners:
        repaired_provisioner.start()
    if world.engine is not None:
        world.engine.honest = True
    for repaired_worker in world.workers.values():
        repaired_worker.deaf = False
        repaired_worker.awake.set()
        repaired_worker.line.heal(plan)
        repaired_worker.process.resume()
        if not repaired_worker.up:
            repaired_worker.start()


def _repair_log(disk):
    disk.full, disk.refuses = False, ""
    for server in disk.servers:
        disk.resume(server)
    disk.leader = disk.leader or disk.servers[0]


__all__ = ["FAULTS", "inject_faults", "repair_all", "worker_events"]

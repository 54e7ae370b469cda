"""Faults of workers, their hosts and what they offer."""

import asyncio

from services.scheduler.heartbeats import RECONNECT_WAIT_S
from tests.simulation.worker import Worker


def _name(target):
    return getattr(target, "name", None) or target.id


def _worker(world, chance):
    there = [w for w in world.workers.values() if w.up]
    return chance.choice(there) if there else None


async def worker(world, chance):
    """A worker's process dies; its scripts run on."""
    broken = _worker(world, chance)
    if broken is None:
        return
    seconds = chance.choice((0.5, 5.0, RECONNECT_WAIT_S - 1, 2 * RECONNECT_WAIT_S, 4 * RECONNECT_WAIT_S))
    world.fault("worker", f"{broken.id} dies for {seconds} s, its scripts run on")
    broken.kill()
    await asyncio.sleep(seconds)
    broken.start()


async def host(world, chance):
    """A host goes down with all scripts, and may come back without its disk."""
    broken = _worker(world, chance)
    if broken is None:
        return
    seconds, fresh = chance.choice((1.0, 10.0, 40.0)), chance.random() < 0.3
    world.fault("host", f"{broken.id} is down for {seconds} s" + (", its disk is lost" if fresh else ""))
    broken.reboot()
    if fresh:
        broken.forget_all()
    await asyncio.sleep(seconds)
    broken.start()


async def partition(world, chance):
    """A process and the log cannot reach each other."""
    target = _worker(world, chance) if chance.random() < 0.6 else chance.choice(world.replicas)
    if target is None or not target.up or target.line.cut:
        return
    line, seconds = target.line, chance.choice((1.0, 7.0, 20.0, 45.0, 90.0))
    world.fault("partition", f"{_name(target)} is cut off for {seconds} s")
    line.cut = True
    await asyncio.sleep(seconds)
    line.cut = False


async def deaf(world, chance):
    """A worker's heartbeats get lost, nothing else."""
    target = _worker(world, chance)
    if target is None:
        return
    world.fault("deaf", f"nobody hears that {target.id} lives")
    target.deaf = True
    await asyncio.sleep(chance.choice((10.0, 40.0)))
    target.deaf = False


async def twin(world, chance):
    """A second worker starts with the id of an existing one; after a while somebody notices."""
    target = _worker(world, chance)
    if target is None:
        return
    seconds = chance.choice((5.0, 40.0))
    world.fault("twin", f"another worker {target.id} is started, for {seconds} s")
    second = Worker(world, target.id, target.slots, target.pool)
    second.start()
    try:
        await asyncio.sleep(seconds)
    finally:
        # Its machine is removed, with everything that it came to run.
        second.reboot()


async def slots(world, chance):
    """Accelerators of a worker fail while it runs, and come back."""
    target = _worker(world, chance)
    if target is None or not target.slots or not target.settled:
        return
    session, before, left = target.session, target.slots, chance.randrange(target.slots)
    world.fault("slots", f"{target.id} has {left} of its {before} slots")
    await target.do(target.change_slots(left))
    await asyncio.sleep(chance.choice((0.5, 10.0, 30.0)))
    if target.up and target.settled and target.slots == left and target.session != session:
        await target.do(target.change_slots(before))


async def resize(world, chance):
    """The cluster gets another worker, or one leaves and comes back with other slots."""
    target = _worker(world, chance)
    if target is None or (len(world.workers) < 5 and chance.random() < 0.5):
        world.fault("resize", f"worker w{len(world.workers)} joins")
        world.add_worker(f"w{len(world.workers)}")
        return
    world.fault("resize", f"worker {target.id} leaves")
    try:
        await target.do(target.leave())
    except asyncio.CancelledError:
        target.kill()
        raise
    if len(world.workers) > 2 and chance.random() < 0.3:
        target.retired = True
        return
    await asyncio.sleep(chance.choice((1.0, 20.0)))
    target.slots = chance.choice((1, 2, 4))
    if not target.up:
        target.start()


async def provisioner(world, chance):
    """A provisioner dies at any point, and is restarted."""
    if not world.provisioners:
        return
    target = chance.choice(world.provisioners)
    world.fault("provisioner", "one dies")
    target.crash()
    await asyncio.sleep(chance.choice((0.5, 20.0)))
    target.start()

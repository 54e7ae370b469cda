"""Faults of workers, their hosts and what they offer."""

import asyncio

from services.scheduler.heartbeats import RECONNECT_WAIT_S
from tests.simulation.worker import Worker


def _name(one):
    return getattr(one, "name", None) or one.id


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
    one = _worker(world, chance) if chance.random() < 0.6 else chance.choice(world.replicas)
    if one is None or not one.up or one.line.cut:
        return
    line, seconds = one.line, chance.choice((1.0, 7.0, 20.0, 45.0, 90.0))
    world.fault("partition", f"{_name(one)} is cut off for {seconds} s")
    line.cut = True
    await asyncio.sleep(seconds)
    line.cut = False


async def deaf(world, chance):
    """A worker's heartbeats get lost, nothing else."""
    one = _worker(world, chance)
    if one is None:
        return
    world.fault("deaf", f"nobody hears that {one.id} lives")
    one.deaf = True
    await asyncio.sleep(chance.choice((10.0, 40.0)))
    one.deaf = False


async def twin(world, chance):
    """A second worker starts with the id of an existing one; after a while somebody notices."""
    one = _worker(world, chance)
    if one is None:
        return
    seconds = chance.choice((5.0, 40.0))
    world.fault("twin", f"another worker {one.id} is started, for {seconds} s")
    second = Worker(world, one.id, one.slots, one.pool)
    second.start()
    try:
        await asyncio.sleep(seconds)
    finally:
        # Its machine is removed, with everything that it came to run.
        second.reboot()


async def slots(world, chance):
    """Accelerators of a worker fail while it runs, and come back."""
    one = _worker(world, chance)
    if one is None or not one.slots or not one.settled:
        return
    session, before, left = one.session, one.slots, chance.randrange(one.slots)
    world.fault("slots", f"{one.id} has {left} of its {before} slots")
    await one.do(one.change_slots(left))
    await asyncio.sleep(chance.choice((0.5, 10.0, 30.0)))
    if one.up and one.settled and one.slots == left and one.session != session:
        await one.do(one.change_slots(before))


async def resize(world, chance):
    """The cluster gets another worker, or one leaves and comes back with other slots."""
    one = _worker(world, chance)
    if one is None or (len(world.workers) < 5 and chance.random() < 0.5):
        world.fault("resize", f"worker w{len(world.workers)} joins")
        world.add_worker(f"w{len(world.workers)}")
        return
    world.fault("resize", f"worker {one.id} leaves")
    try:
        await one.do(one.leave())
    except asyncio.CancelledError:
        one.kill()
        raise
    if len(world.workers) > 2 and chance.random() < 0.3:
        one.retired = True
        return
    await asyncio.sleep(chance.choice((1.0, 20.0)))
    one.slots = chance.choice((1, 2, 4))
    if not one.up:
        one.start()


async def provisioner(world, chance):
    """A provisioner dies at any point, and is restarted."""
    if not world.provisioners:
        return
    one = chance.choice(world.provisioners)
    world.fault("provisioner", "one dies")
    one.crash()
    await asyncio.sleep(chance.choice((0.5, 20.0)))
    one.start()

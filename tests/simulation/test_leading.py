"""Two replicas that both believe to lead, one of which cannot read the other's decisions."""

import asyncio
from contextlib import asynccontextmanager

from det_contracts.commands import ChangeExperiment, CreateExperiment
from det_contracts.problems import Refused
from services.kit.decider import Decider
from services.kit.rules import Call
from tests.simulation.loop import run
from tests.simulation.plan import KINDS, plan_of
from tests.simulation.saturation import config
from tests.simulation.virtual_time import virtual_time
from tests.simulation.world import World

PATIENCE_S = 10.0


@asynccontextmanager
async def two_searchers():
    """The world, a searcher that led first, and another that leads too; they read from different brokers."""
    loop = asyncio.get_running_loop()
    for seed in range(100):
        plan = plan_of(seed, off=KINDS)
        with virtual_time(loop.time, plan):
            world = World(plan)
            if len(world.of("searcher")) < 2:
                continue
            world.start_services()
            first, second = world.of("searcher")
            first.line.server, second.line.server = world.disk.servers[1:]
            await asyncio.sleep(1)
            second.lead(True)
            await asyncio.sleep(1)
            yield world, first, second
            return


def create(world):
    return CreateExperiment(user="ann", config=config(world), original_config="", activate=True)


def pause(id):
    return ChangeExperiment(experiment_id=id, action="pause", user="ann")


async def ask(replica, command):
    call = Call(f"call-{type(command).__name__}", replica.clock())
    _, value = await replica.process.run(replica.rule(command, call, PATIENCE_S))
    return value


async def refused_by_who_cannot_know():
    """Whether it answers before it can read again, and with which code it refuses the command."""
    async with two_searchers() as (world, first, second):
        world.disk.stop(first.line.server)
        id = await ask(second, create(world))
        asking = asyncio.ensure_future(ask(first, pause(id)))
        await asyncio.sleep(1)
        early = asking.done()
        world.disk.resume(first.line.server)
        try:
            await asking
        except Refused as refusal:
            return early, refusal.problem.code
        return early, ""


def test_who_has_not_read_what_others_decided_refuses_nothing():
    assert run(refused_by_who_cannot_know()) == (False, "")


def test_a_refusal_without_asking_would_be_wrong(monkeypatch):
    async def believed(self):
        return 0

    monkeypatch.setattr(Decider, "_find_end", believed)
    assert run(refused_by_who_cannot_know()) == (True, "not_found")

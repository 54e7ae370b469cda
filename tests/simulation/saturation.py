"""A cluster without faults, whose clients never pause."""

import asyncio
from dataclasses import replace
from itertools import cycle

from det_contracts.commands import ChangeExperiment, ChangeJob, CreateExperiment, SwitchWorker
from det_contracts.expconf import complete
from det_contracts.problems import Refused
from tests.simulation.loop import run
from tests.simulation.plan import KINDS, plan_of
from tests.simulation.promptness import TURNS, Promptness
from tests.simulation.simulate import ask_at_the_end, come_to_rest
from tests.simulation.virtual_time import virtual_time
from tests.simulation.worker import Worker
from tests.simulation.world import World

ANSWERS = 600
PATIENCE_S = 60.0


def saturate(seed, clients, *, answers=ANSWERS, most=TURNS):
    """Let clients, endless functions of (world, number), get `answers` answers in total, and then rest.

    Returns the world, with `promptness.longest`. Raises `Violation`.
    """

    async def main():
        loop = asyncio.get_running_loop()
        plan = replace(plan_of(seed, off=KINDS), step_s=0.01, lag_s=0.005)
        with virtual_time(loop.time, plan):
            world = World(plan)
            world.promptness = Promptness(most)
            world.start_services()
            for number in range(3):
                world.join(Worker(world, f"w{number}", 4))
            tasks = [loop.create_task(client(world, number)) for number, client in enumerate(clients)]
            while world.ledger.counts.get("answers", 0) < answers:
                await world.sleep(0.1)
                assert loop.time() < PATIENCE_S, world.ledger.counts
            for task in tasks:
                task.cancel()
            await come_to_rest(world, most_steps=10**6)
            await ask_at_the_end(world)
            return world

    return run(main())


async def _ask(world, owner, command):
    """Ask, and ignore a refusal."""
    try:
        _, value = await world.ask(owner, command)
    except Refused:
        return None
    world.ledger.count("answers")
    return value


def config(world, trials=1, length=2):
    """A small search."""
    written = {
        "name": "flood",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "random", "metric": "loss", "max_length": length, "max_trials": trials},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
    }
    return complete(written, seed=world.plan.seed, name="flood")


async def submits(world, number):
    """Submits the next experiment as soon as the last one was answered."""
    while True:
        command = CreateExperiment(
            user=f"user{number}",
            config=config(world),
            original_config="",
            activate=True,
            request_key=world.new_id(),
        )
        await _ask(world, "searcher", command)


async def toggles(world, number):
    """Pauses and activates one experiment, as fast as it is answered."""
    experiment_config = config(world, trials=2, length=200)
    command = CreateExperiment(
        user=f"user{number}", config=experiment_config, original_config="", activate=True
    )
    id = None
    while id is None:
        id = await _ask(world, "searcher", command)
    for action in cycle(("pause", "activate")):
        await _ask(world, "searcher", ChangeExperiment(experiment_id=id, action=action, user=f"user{number}"))


async def switches(world, number):
    """Drains and enables workers, and moves jobs."""
    while True:
        for enabled in (False, True):
            command = SwitchWorker(worker_id="w0", enabled=enabled, drain=True, user="admin")
            await _ask(world, "scheduler", command)
        for id in list(world.ledger.experiments)[-3:]:
            await _ask(world, "scheduler", ChangeJob(experiment_id=id, priority=1 + id % 90, user="admin"))
        await asyncio.sleep(0.001)

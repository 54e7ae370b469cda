"""The provisioner: its real rounds over an engine that lies, in a process that can die at any await."""

import asyncio

import msgspec

from det_contracts.events.scheduler import Provider
from det_contracts.problems import Refused, unavailable
from det_contracts.queries import Provisioning
from services.provisioner.plan import DesiredPool
from services.provisioner.reconciliation import reconcile_pool
from tests.simulation.engine import POOL, SLOTS

MOST = 3
PROVIDER = Provider(
    type="process",
    slots_per_instance=SLOTS,
    max_instances=MOST,
    max_idle_s=40.0,
    max_starting_s=30.0,
    notice_s=10.0,
)
EVERY_S = 4.0


def growing(world, pools):
    """The pools of a configuration, including the one that grows, if there is one."""
    if world.engine is None:
        return pools
    return pools | {POOL: msgspec.structs.replace(pools[POOL], provider=PROVIDER)}


class Provisioner:
    """One process. It has no memory between rounds."""

    def __init__(self, world):
        self._world = world
        self._task = None

    def start(self):
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._on_task_done)

    def crash(self):
        """Die at any point."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _on_task_done(self, task):
        if not task.cancelled() and task.exception() is not None:
            self._world.fail(task.exception())

    async def _run(self):
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await reconcile_pool(POOL, self._world.engine, self._query_request, self._send_command)
            except Refused:
                continue

    async def _send_command(self, command):
        await self._world.ask("scheduler", command)

    async def _query_request(self):
        """Ask any replica, also one that has not caught up."""
        there = self._world.answering("scheduler")
        if not there:
            raise unavailable("no scheduler")
        chosen = self._world.plan.chance(f"wish-{self._world.new_id()}").choice(there)
        rows = chosen.rules.answers[Provisioning](chosen.runner.state, Provisioning())
        pools = msgspec.convert(rows, list[DesiredPool])
        return next((row for row in pools if row.pool == POOL), DesiredPool(pool=POOL))

"""The provisioner as a process, assembled from its parts. It has no database and keeps no state."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nats.aio.msg import Msg

from det_contracts import subjects
from services.kit import conditions, stateless_host
from services.kit.bus import BusClient
from services.kit.process_metrics import Measures, Reading
from services.kit.self_watch import SelfWatch
from services.kit.stateless_host import ProcessContext, ProcessParts
from services.provisioner.pools import load_engines
from services.provisioner.reconciler import Reconciler
from services.provisioner.settings import Settings, require_pools_file

if TYPE_CHECKING:
    from services.kit.spans import Tracer

OWNER = subjects.PROVISIONER
POLL_EVERY_S = 1.0


async def serve(settings: Settings, tracer: Tracer | None) -> None:
    """Let pools grow and shrink until cancelled. Raises `BadSettings`."""
    engines = load_engines(settings, require_pools_file(settings))

    async def join(context: ProcessContext) -> ProcessParts:
        lease = context.lease
        bus_client = BusClient(context.connection)
        work = Reconciler(
            engines, bus_client, poll_s=settings.provisioner_look_s, is_leader=lambda: lease.active
        )

        async def on_decision(_: Msg) -> None:
            work.on_leadership_change()

        # Only a hint that there is something to do; the query tells what.
        for what in ("wanted", "released"):
            await context.connection.subscribe(f"control.scheduler.worker.*.{what}", cb=on_decision)
        return ProcessParts(
            work=work,
            position=lambda: 0,
            readings=lambda: _readings(work),
            background=[_report_conditions(work, context.watch)],
        )

    await stateless_host.serve(OWNER, settings, tracer, Measures(OWNER), join)


async def _report_conditions(work: Reconciler, watch: SelfWatch) -> None:
    while True:
        failing = {pool: f"pool {pool} cannot grow or shrink" for pool, text in work.problems.items() if text}
        watch.conditions.set_condition(conditions.ENGINE_AWAY, failing, work.problems)
        await asyncio.sleep(POLL_EVERY_S)


def _readings(work: Reconciler) -> Iterable[Reading]:
    unavailable = {(pool,): float(bool(problem)) for pool, problem in work.problems.items()}
    yield Reading("engine_away", "1 while the engine of a pool cannot be asked", ("pool",), unavailable)
    yield Reading("looks", "Looks at the engines since the start", (), {(): float(work.completed_checks)})

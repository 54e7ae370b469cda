"""The provisioner as a process, assembled from its parts. It has no database and keeps no state."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nats.aio.msg import Msg

from det_contracts import subjects
from services.kit import conditions, no_database
from services.kit.bus import Asker
from services.kit.no_database import Ground, Joined
from services.kit.process_metrics import Measures, Reading
from services.kit.self_watch import SelfWatch
from services.provisioner.pools import engines_of
from services.provisioner.settings import Settings, checked
from services.provisioner.work import Work

if TYPE_CHECKING:
    from services.kit.spans import Tracer

OWNER = subjects.PROVISIONER
LOOK_EVERY_S = 1.0


async def serve(settings: Settings, tracer: Tracer | None) -> None:
    """Let pools grow and shrink until cancelled. Raises `BadSettings`."""
    engines = engines_of(settings, checked(settings))

    async def join(ground: Ground) -> Joined:
        lease = ground.lease
        asker = Asker(ground.connection)
        work = Work(engines, asker, look_s=settings.provisioner_look_s, leading=lambda: lease.active)

        async def decided(_: Msg) -> None:
            work.lead()

        # Only a hint that there is something to do; the query tells what.
        for what in ("wanted", "released"):
            await ground.connection.subscribe(f"control.scheduler.worker.*.{what}", cb=decided)
        return Joined(
            work=work,
            position=lambda: 0,
            readings=lambda: _readings(work),
            beside=[_tell(work, ground.watch)],
        )

    await no_database.serve(OWNER, settings, tracer, Measures(OWNER), join)


async def _tell(work: Work, watch: SelfWatch) -> None:
    while True:
        failing = {pool: f"pool {pool} cannot grow or shrink" for pool, text in work.problems.items() if text}
        watch.conditions.tell(conditions.ENGINE_AWAY, failing, work.problems)
        await asyncio.sleep(LOOK_EVERY_S)


def _readings(work: Work) -> Iterable[Reading]:
    away = {(pool,): float(bool(problem)) for pool, problem in work.problems.items()}
    yield Reading("engine_away", "1 while the engine of a pool cannot be asked", ("pool",), away)
    yield Reading("looks", "Looks at the engines since the start", (), {(): float(work.looks)})

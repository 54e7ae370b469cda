"""Listens for signs of life of workers and reports those that fell silent.

Absence is the one fact that nobody states, so this watch, outside the pure rules, turns it into a
command; what follows from it is decided by the log alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from nats.aio.msg import Msg

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit.measures import Reading
from services.kit.parts import Parts
from services.kit.rules import Call
from services.scheduler.commands import ReportSilence
from services.scheduler.domain import State

RECONNECT_WAIT_S = 25.0
"""Silence after which a worker counts as lost: longer than a leader change of the log (15 s)."""
LOOK_EVERY_S = 1.0
PATIENCE_S = 5.0
"""A report that was not ruled on by then is about the past."""


class Watch:
    """When each worker was last heard of, by this process's own clock."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._heard: dict[str, float] = {}
        self._since = time.monotonic()
        self._met: dict[str, tuple[str, float]] = {}
        """The session of each worker, and when it was seen first: a registration is a sign of life, too."""

    async def on_beat(self, message: Msg) -> None:
        """A heartbeat: `heartbeat.<worker id>`."""
        self._heard[message.subject.rpartition(".")[2]] = time.monotonic()

    def readings(self, state: State) -> Iterable[Reading]:
        """How long ago each worker that ought to be here gave a sign of life."""
        now = time.monotonic()
        here = [one.id for one in state.workers.values() if one.presence == "here"]
        ages = {(id,): now - self._heard[id] for id in here if id in self._heard}
        yield Reading("heartbeat_age_seconds", "Time since the last heartbeat", ("worker",), ages)

    def silent(self, state: State) -> list[ReportSilence]:
        """Workers that ought to be here and are not heard of.

        Nobody is silent before this watch itself has listened for as long as its patience.
        """
        now = time.monotonic()
        reports = []
        for worker in state.workers.values():
            if self._met.get(worker.id, ("", 0.0))[0] != worker.session:
                self._met[worker.id] = worker.session, now
            quiet = now - max(self._heard.get(worker.id, 0.0), self._met[worker.id][1], self._since)
            if worker.presence == "here" and quiet > self._patience_s:
                reports.append(ReportSilence(worker.id, worker.session, quiet))
        return reports


async def watch(parts: Parts, patience_s: float) -> None:
    """Report silent workers for as long as this replica leads."""
    listening = Watch(patience_s)
    parts.measures.read(lambda: listening.readings(parts.runner.state))
    await parts.connection.subscribe(subjects.heartbeat("*"), cb=listening.on_beat)
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if not parts.leading():
            continue
        for report in listening.silent(parts.runner.state):
            try:
                await parts.runner.command(report, Call(f"silence-{report.session}", time.time()), PATIENCE_S)
            except Refused:
                continue

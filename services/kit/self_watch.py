"""A process watches itself: its health pages say what is wrong, and it exits when only a restart can help.

It exits if its event loop stalls, or if it stops reading the log although broker and database answer, for
longer than the setting `stuck_s`. Time during which the process is stopped, or the machine sleeps or is too
busy to run it, does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import structlog
from nats.aio.client import Client

from det_contracts import subjects
from services.kit import conditions as names
from services.kit import process
from services.kit.awake_clock import awake
from services.kit.cluster_look import ClusterLook, Judge, Look
from services.kit.conditions import Conditions, Standstill
from services.kit.health import HealthPages
from services.kit.lag import SAVING, Behind, Lags, Left, Oldest
from services.kit.loop_watchdog import watching
from services.kit.process_metrics import Measures
from services.kit.settings import ServiceSettings
from services.kit.standstill import Failed
from services.kit.tls import server_context

LOOK_EVERY_S = 1.0
STARTING_EVERY_S = 0.1
"""Interval in seconds during startup: those waiting for the process rely on the page."""
DECIDES_S = 45.0
"""Maximum duration of a round in seconds. A single append is given up after 30 s."""
SAVING_PATIENCE = 5
"""Factor on the stall limit for saving: a transaction can take long, and a restart would not make it
faster."""

End = Callable[[str], object]
log = structlog.get_logger()


@dataclass(frozen=True)
class Facts:
    """Where to read the state of a process."""

    connection: Client
    look: ClusterLook | None
    """None for a worker, which may neither query the broker nor receive what others saw."""
    starting: Callable[[], str]
    """What the process waits for before it is ready; empty once it is."""
    behind: Callable[[], Mapping[str, Left]]
    """Remaining work per stream, and for `SAVING`."""
    position: Callable[[str], int]
    """The current position of each of them."""
    reads_all: bool = True
    """Whether all of CONTROL is read, so that its end shows how much is left."""
    refusals: Callable[[], Mapping[str, str]] = dict
    """Per stream, why it recently refused to store something for this process."""
    failing: Callable[[], str] = str
    """Why the database does not work; empty if it does."""
    parked: Callable[[], Mapping[str, str]] = dict
    """Records that cannot be decided on, each with the reason."""
    rebuilding: Callable[[], str] = str
    """How far the rebuild of the database is; empty if it is not rebuilt."""
    failed: Callable[[], Failed | None] = lambda: None
    """The event at which folding stands still until an administrator decides."""
    saves: Callable[[], bool] = lambda: False
    """Whether this process should currently save what it folds."""
    deciding: Callable[[], tuple[bool, int]] = lambda: (False, 0)
    """Whether a decision is pending, and how many have been completed."""


class SelfWatch:
    """Watches one process."""

    def __init__(
        self, program: str, settings: ServiceSettings, measures: Measures, end: End = process.end_stuck
    ) -> None:
        self.conditions = Conditions(program)
        self.pages = HealthPages(self.conditions, measures)
        self._settings = settings
        self._measures = measures
        self._end = end
        self._judge = Judge()
        self._position: Callable[[str], int] = lambda _: 0
        self._lags = Lags(settings.log_lags_s, lambda name: self._position(name))
        self._still: defaultdict[str, Standstill] = defaultdict(Standstill)
        self._control = Behind()
        """Progress on CONTROL, measured against its end as the broker reports it."""

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Serve the health pages inside the context, if the settings ask for them."""
        port, host = self._settings.health_port, self._settings.health_host
        if port is not None:
            try:
                context = server_context(self._settings) if self._settings.health_tls else None
                log.info("health.listening", port=self.pages.start(port, host, context))
            except OSError as error:
                # Failing to serve the health page must not stop the service.
                log.error("health.unavailable", port=port, error=str(error))
        try:
            yield
        finally:
            self.pages.stop()

    def begin(self, what: str) -> None:
        """Report what the process is waiting for before it can be watched."""
        self.conditions.tell(names.STARTING, {"": what})

    @contextlib.contextmanager
    def watching_loop(self) -> Iterator[None]:
        """Watch the event loop inside the context. From here on, nothing may block it."""
        stuck_s, limit_s = self._settings.stuck_s, self._settings.loop_blocked_s
        # Without the watchdog, nothing would renew the switch.
        renew = process.begin_dead_mans_switch(stuck_s) if stuck_s > 0 and limit_s > 0 else None

        def looked(seconds: float) -> None:
            if renew is not None:
                renew()
            self.looked(seconds)

        try:
            with watching(limit_s, self._measures.blocked, looked):
                yield
        finally:
            if renew is not None:
                process.end_dead_mans_switch()

    def looked(self, stalled_s: float) -> None:
        """Receive the result of the loop watchdog, in its thread."""
        wrong = {"": "the event loop is blocked: no request is answered"} if stalled_s else {}
        self.conditions.tell(names.LOOP_BLOCKED, wrong)
        if 0 < self._settings.stuck_s < stalled_s:
            self._end(f"the event loop has been stalled for {stalled_s:.0f} s")

    async def run(self, facts: Facts) -> None:
        """Look once a second until cancelled, more often during startup."""
        while True:
            self.look(facts, awake())
            await asyncio.sleep(STARTING_EVERY_S if facts.starting() else LOOK_EVERY_S)

    def look(self, facts: Facts, now: float) -> None:
        """Find out what is wrong. `now` counts the seconds for which this process was awake."""
        tell, starting, failing = self.conditions.tell, facts.starting(), facts.failing()
        connected = facts.connection.is_connected
        look = facts.look.last if connected and facts.look is not None else None
        tell(names.STARTING, {"": starting} if starting else {})
        tell(names.BROKER_AWAY, {} if connected else {"": "there is no connection to the broker"})
        tell(names.DATABASE_FAILS, {"": "the database does not work"} if failing else {}, {"": failing})
        nobody, late, silent = self._judge.look(now, look)
        tell(names.NOBODY_LEADS, nobody)
        tell(names.REPLICA_BEHIND, late)
        refusals = facts.refusals()
        problems = {name: seen.problem for name, seen in look.streams.items()} if look is not None else {}
        refused = {name: f"stream {name} refuses to store anything" for name in refusals}
        tell(names.STREAM_REFUSES, {**silent, **refused}, {**problems, **refusals})
        parked = facts.parked()
        rebuilding = facts.rebuilding()
        tell(names.REBUILDING, {"": rebuilding} if rebuilding else {})
        self._look_at_folding(facts.failed())
        tell(names.DECISIONS_PARKED, {one: f"nothing can be decided about {one}" for one in parked}, parked)
        self._look_at_deciding(facts, now, look)
        self._look_at_reading(facts, now, look, ready=connected and not starting)

    def _look_at_folding(self, failed: Failed | None) -> None:
        wrong = (
            {failed.place: f"it stands still at event {failed.position} of {failed.stream}"} if failed else {}
        )
        errors = {failed.place: failed.error} if failed else {}
        self.conditions.tell(names.EVENT_FAILS, wrong, errors)

    def _look_at_deciding(self, facts: Facts, now: float, look: Look | None) -> None:
        under_way, rounds = facts.deciding()
        moving = under_way and self._could_move(subjects.CONTROL, facts, look)
        still_s = self._still["deciding"].look(now, left=moving, progress=rounds)
        wrong = {"": "no decisions are made, for no visible reason"}
        self.conditions.tell(names.DECISIONS_STAND_STILL, wrong if still_s > DECIDES_S else {})
        if self._settings.stuck_s > 0 and still_s > max(self._settings.stuck_s, DECIDES_S):
            self._end(f"nothing was decided for {still_s:.0f} s")

    def _look_at_reading(self, facts: Facts, now: float, look: Look | None, *, ready: bool) -> None:
        self._position = facts.position
        behind = dict(facts.behind())
        if facts.reads_all and look is not None and subjects.CONTROL in behind:
            self._control.known(
                look.streams[subjects.CONTROL].last if subjects.CONTROL in look.streams else 0
            )
            self._control.done(facts.position(subjects.CONTROL))
            behind[subjects.CONTROL] = Oldest(behind[subjects.CONTROL], self._control)
        self.conditions.tell(names.LOG_LAGS, self._lags.look(behind, judged=ready))
        for name, one in behind.items():
            moving = (
                one.left > 0
                and not facts.failing()
                and facts.failed() is None
                and self._could_move(name, facts, look)
            )
            progress = facts.position(name), one.completed
            still_s = self._still[name].look(now, left=moving, progress=progress)
            if 0 < self._settings.stuck_s * (SAVING_PATIENCE if name == SAVING else 1) < still_s:
                where = f"at position {facts.position(name)} with {one.left} more"
                self._end(f"{name} has made no progress for {still_s:.0f} s {where}")

    def _could_move(self, name: str, facts: Facts, look: Look | None) -> bool:
        """Whether only this process itself can be the reason for a standstill."""
        if look is None:
            return False
        if name == SAVING:
            return facts.saves()
        seen = look.streams.get(name)
        return seen is not None and not seen.problem

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
from services.kit.cluster_monitor import ClusterMonitor, ClusterReport, ReportEvaluator
from services.kit.conditions import Conditions, StallTimer
from services.kit.health import HealthPages
from services.kit.lag import SAVING, HasLag, Lag, LagMonitor, WorstLag
from services.kit.log_progress import LogProgress
from services.kit.loop_watchdog import watch_loop
from services.kit.process_metrics import Measures
from services.kit.settings import ServiceSettings
from services.kit.standstill import Failed
from services.kit.tls import server_context

POLL_EVERY_S = 1.0
STARTING_EVERY_S = 0.1
"""Interval in seconds during startup: those waiting for the process rely on the page."""
MAX_ROUND_S = 45.0
"""Maximum duration of a round in seconds. A single append is given up after 30 s."""
SAVING_LIMIT_FACTOR = 5
"""Factor on the stall limit for saving: a transaction can take long, and a restart would not make it
faster."""

Exit = Callable[[str], object]
log = structlog.get_logger()


@dataclass(frozen=True)
class WatchSources:
    """Where to read the state of a process."""

    connection: Client
    look: ClusterMonitor | None
    """None for a worker, which may neither query the broker nor receive what others saw."""
    starting: Callable[[], str]
    """What the process waits for before it is ready; empty once it is."""
    lag: Callable[[], Mapping[str, HasLag]]
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
    decision_progress: Callable[[], tuple[bool, int]] = lambda: (False, 0)
    """Whether a decision is pending, and how many have been completed."""


class SelfWatch:
    """Watches one process."""

    def __init__(
        self, program: str, settings: ServiceSettings, measures: Measures, end: Exit = process.exit_stuck
    ) -> None:
        self.conditions = Conditions(program)
        self.pages = HealthPages(self.conditions, measures)
        self.progress: list[LogProgress] = []
        """How far the process was when it last looked: each stream, and saving if it saves."""
        self._settings = settings
        self._measures = measures
        self._exit = end
        self._evaluator = ReportEvaluator()
        self._position: Callable[[str], int] = lambda _: 0
        self._lag_monitor = LagMonitor(settings.log_lags_s, lambda name: self._position(name))
        self._stall_timers: defaultdict[str, StallTimer] = defaultdict(StallTimer)
        self._control_lag = Lag()
        """Progress on CONTROL, measured against its end as the broker reports it."""

    @contextlib.contextmanager
    def serve_pages(self) -> Iterator[None]:
        """Serve the health pages inside the context, if the settings ask for them."""
        # Before the first page can be asked for: without a word about it, the process would be ready.
        self.set_starting("waiting for the broker")
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

    def set_starting(self, what: str) -> None:
        """Report what the process is waiting for before it can be watched."""
        self.conditions.set_condition(names.STARTING, {"": what})

    @contextlib.contextmanager
    def watch_loop(self) -> Iterator[None]:
        """Watch the event loop inside the context. From here on, nothing may block it."""
        stuck_s, limit_s = self._settings.stuck_s, self._settings.loop_blocked_s
        # Without the watchdog, nothing would renew the switch.
        # The thread that renews it cannot run either while a call in C holds the interpreter's lock: then
        # the kernel ends the process.
        renew = process.arm_dead_mans_switch(stuck_s) if stuck_s > 0 and limit_s > 0 else None

        def looked(seconds: float) -> None:
            if renew is not None:
                renew()
            self.on_loop_check(seconds)

        try:
            with watch_loop(limit_s, self._measures.blocked, looked):
                yield
        finally:
            if renew is not None:
                process.disarm_dead_mans_switch()

    def on_loop_check(self, stalled_s: float) -> None:
        """Receive the result of the loop watchdog, in its thread."""
        wrong = {"": "the event loop is blocked: no request is answered"} if stalled_s else {}
        self.conditions.set_condition(names.LOOP_BLOCKED, wrong)
        if 0 < self._settings.stuck_s < stalled_s:
            self._exit(f"the event loop has been stalled for {stalled_s:.0f} s")

    async def run(self, sources: WatchSources) -> None:
        """Look once a second until cancelled, more often during startup."""
        while True:
            self.check(sources, awake())
            await asyncio.sleep(STARTING_EVERY_S if sources.starting() else POLL_EVERY_S)

    def check(self, sources: WatchSources, now: float) -> None:
        """Find out what is wrong. `now` counts the seconds for which this process was awake."""
        set_condition = self.conditions.set_condition
        starting, failing = sources.starting(), sources.failing()
        connected = sources.connection.is_connected
        look = sources.look.last if connected and sources.look is not None else None
        set_condition(names.STARTING, {"": starting} if starting else {})
        set_condition(names.BROKER_AWAY, {} if connected else {"": "there is no connection to the broker"})
        set_condition(
            names.DATABASE_FAILS, {"": "the database does not work"} if failing else {}, {"": failing}
        )
        nobody, late, silent = self._evaluator.update(now, look)
        set_condition(names.NOBODY_LEADS, nobody)
        set_condition(names.REPLICA_BEHIND, late)
        refusals = sources.refusals()
        problems = {name: stream.problem for name, stream in look.streams.items()} if look is not None else {}
        refused = {name: f"stream {name} refuses to store anything" for name in refusals}
        set_condition(names.STREAM_REFUSES, {**silent, **refused}, {**problems, **refusals})
        parked = sources.parked()
        rebuilding = sources.rebuilding()
        set_condition(names.REBUILDING, {"": rebuilding} if rebuilding else {})
        self._check_folding(sources.failed())
        set_condition(
            names.DECISIONS_PARKED,
            {record: f"nothing can be decided about {record}" for record in parked},
            parked,
        )
        self._check_deciding(sources, now, look)
        self._check_reading(sources, now, look, ready=connected and not starting)

    def _check_folding(self, failed: Failed | None) -> None:
        wrong = (
            {failed.location: f"it stands still at event {failed.position} of {failed.stream}"}
            if failed
            else {}
        )
        errors = {failed.location: failed.error} if failed else {}
        self.conditions.set_condition(names.EVENT_FAILS, wrong, errors)

    def _check_deciding(self, sources: WatchSources, now: float, report: ClusterReport | None) -> None:
        under_way, rounds = sources.decision_progress()
        moving = under_way and self._could_progress(subjects.CONTROL, sources, report)
        still_s = self._stall_timers["deciding"].update(now, has_work=moving, progress=rounds)
        wrong = {"": "no decisions are made, for no visible reason"}
        self.conditions.set_condition(names.DECISIONS_STAND_STILL, wrong if still_s > MAX_ROUND_S else {})
        if self._settings.stuck_s > 0 and still_s > max(self._settings.stuck_s, MAX_ROUND_S):
            self._exit(f"nothing was decided for {still_s:.0f} s")

    def _check_reading(
        self, sources: WatchSources, now: float, report: ClusterReport | None, *, ready: bool
    ) -> None:
        self._position = sources.position
        lag = dict(sources.lag())
        if sources.reads_all and report is not None and subjects.CONTROL in lag:
            self._control_lag.set_total(
                report.streams[subjects.CONTROL].last if subjects.CONTROL in report.streams else 0
            )
            self._control_lag.set_done(sources.position(subjects.CONTROL))
            lag[subjects.CONTROL] = WorstLag(lag[subjects.CONTROL], self._control_lag)
        self.conditions.set_condition(names.LOG_LAGS, self._lag_monitor.check(lag, enforced=ready))
        self.progress = [
            LogProgress(name, sources.position(name), measure.left, measure.age_s)
            for name, measure in lag.items()
            if name != SAVING or sources.saves()
        ]
        for name, measure in lag.items():
            moving = (
                measure.left > 0
                and not sources.failing()
                # Waiting for an administrator is no standstill that a restart could end (decision 68).
                and sources.failed() is None
                and self._could_progress(name, sources, report)
            )
            progress = sources.position(name), measure.completed
            still_s = self._stall_timers[name].update(now, has_work=moving, progress=progress)
            if 0 < self._settings.stuck_s * (SAVING_LIMIT_FACTOR if name == SAVING else 1) < still_s:
                where = f"at position {sources.position(name)} with {measure.left} more"
                self._exit(f"{name} has made no progress for {still_s:.0f} s {where}")

    def _could_progress(self, name: str, sources: WatchSources, report: ClusterReport | None) -> bool:
        """Whether only this process itself can be the reason for a standstill."""
        # Without an answer of the broker, it may be the reason. To exit would help nobody.
        if report is None:
            return False
        if name == SAVING:
            return sources.saves()
        stream = report.streams.get(name)
        return stream is not None and not stream.problem

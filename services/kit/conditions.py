"""What can be wrong with a process or its cluster, and what currently is.

A condition has a name, shared by the metrics, the alerts and docs/guides/health.md, and a text for operators:
what it is, and what to do. It can hold for several things at once, such as two streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec
import structlog

from services.kit.process_metrics import Reading

STARTING = "starting"
LOOP_BLOCKED = "loop_blocked"
LOG_LAGS = "log_lags"
NOBODY_LEADS = "nobody_leads"
REPLICA_BEHIND = "replica_behind"
STREAM_REFUSES = "stream_refuses"
BROKER_AWAY = "broker_away"
DATABASE_FAILS = "database_fails"
DECISIONS_PARKED = "decisions_parked"
REBUILDING = "rebuilding"
REBUILD_REFUSED = "rebuild_refused"
EVENT_FAILS = "event_fails"
DECISIONS_STAND_STILL = "decisions_stand_still"
DISK_LOW = "disk_low"
ARCHIVE_FAILS = "archive_fails"
COPY_FAILS = "copy_fails"
ENGINE_AWAY = "engine_away"

NONE: Mapping[str, str] = {}

log = structlog.get_logger()


class ConditionKind(NamedTuple):
    """Properties of a condition."""

    action: str
    """What the operator should do about it."""
    serves_requests: bool = True
    """Whether a process with this condition should still get requests, because another would be no better
    off."""
    is_reported: bool = True
    """Whether the condition is reported to other processes. False if they see it themselves or need not
    know."""


KINDS: dict[str, ConditionKind] = {
    STARTING: ConditionKind(
        "Wait: startup continues by itself. If the position does not advance, check the output.",
        serves_requests=False,
        is_reported=False,
    ),
    LOOP_BLOCKED: ConditionKind(
        "Its output has loop.blocked with the stack. If this lasts, the process exits and is restarted.",
        serves_requests=False,
        is_reported=False,
    ),
    LOG_LAGS: ConditionKind(
        "What it shows is stale. Look for loop.blocked in its output, and check its processor time and disk. "
        "If nothing moves, the process exits and is restarted.",
        serves_requests=False,
    ),
    NOBODY_LEADS: ConditionKind(
        "Check whether a replica of it runs, and its output. Nothing is lost, and scripts keep training.",
        is_reported=False,
    ),
    REPLICA_BEHIND: ConditionKind(
        "Check whether that broker runs, its disk and its network. Until it has caught up, the loss of "
        "another broker stops the cluster.",
        is_reported=False,
    ),
    STREAM_REFUSES: ConditionKind(
        "Check the broker's output, and the free space and permissions of its disk. Scripts keep training "
        "and keep their reports."
    ),
    BROKER_AWAY: ConditionKind(
        "Check whether nats-server runs, and the network. Scripts keep training and keep their reports.",
        is_reported=False,
    ),
    DATABASE_FAILS: ConditionKind(
        "Check whether the database runs, and the free space and permissions of its disk. It is retried.",
        serves_requests=False,
    ),
    DECISIONS_PARKED: ConditionKind(
        "This is a bug: please report it with the decision.parked lines of its output. Everything else "
        "continues; kill or delete the record, or run a version that can handle it. Once the cause is gone: "
        "det master retry-parked, or Retry on the Health page."
    ),
    REBUILDING: ConditionKind(
        "Wait: an administrator asked for it. It decides nothing until it has folded the whole log, and "
        "nothing is lost.",
        serves_requests=False,
    ),
    REBUILD_REFUSED: ConditionKind(
        "Do what the line says, then ask again: det master rebuild, or Rebuild on the Health page. "
        "Everything else continues."
    ),
    EVENT_FAILS: ConditionKind(
        "This is a bug: please report it with the event.failed lines of its output. Run a version that can "
        "process the event, or have it skipped or retried: det master skip-event, det master retry-parked, "
        "or the Health page. If it is the gateway: python -m services.local.skip.",
        serves_requests=False,
    ),
    DECISIONS_STAND_STILL: ConditionKind(
        "This is a bug: please report it with its output. If this lasts, the process exits and is restarted."
    ),
    DISK_LOW: ConditionKind(
        "Free some space there. Running work continues; new work is refused until then.",
    ),
    ARCHIVE_FAILS: ConditionKind(
        "Check the archive's directory or bucket: its space, its permissions, whether it is complete. Until "
        "then nothing is removed from the broker, and everything else continues."
    ),
    COPY_FAILS: ConditionKind(
        "Check the directory or bucket of STEADFAST_METRICS_STORE: its space, its permissions, whether all "
        "objects are there. Everything else continues, but the database has no newer copy: keep it."
    ),
    ENGINE_AWAY: ConditionKind(
        "Check what runs the pool's workers: whether it answers on the provisioner's host, as its user. "
        "Until then no worker is started or stopped; existing ones keep working."
    ),
}


class Trouble(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    condition: str
    about: str
    """What the condition holds for: a stream or an owner; empty for the process itself."""
    message: str
    since: float
    """Seconds since the epoch."""
    program: str
    """The process that reports it."""
    detail: str = ""
    """The broker's or database's own message. For operators only, because it may name hosts and paths."""

    @property
    def action(self) -> str:
        """What to do about it."""
        return KINDS[self.condition].action

    def line(self) -> str:
        """The whole trouble on one line."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.since))
        why = f" ({self.detail})" if self.detail else ""
        return f"{self.condition}: {self.message}{why}, since {since}. {self.action}"


class Conditions:
    """What is currently wrong, as known to one process.

    Each condition is set by one thread only; any thread may read.
    """

    def __init__(self, program: str, clock: Callable[[], float] = time.time) -> None:
        self.program = program
        self._clock = clock
        self._troubles: dict[str, dict[str, Trouble]] = {}

    def set_condition(
        self, condition: str, messages: Mapping[str, str], details: Mapping[str, str] = NONE
    ) -> None:
        """Set what the condition holds for, each with a message. It ends for everything else.

        `details` are the broker's or database's own messages.
        """
        before, now = self._troubles.get(condition, {}), self._clock()
        troubles = {
            about: Trouble(
                condition,
                about,
                text,
                before[about].since if about in before else now,
                self.program,
                details.get(about, ""),
            )
            for about, text in messages.items()
        }
        self._troubles[condition] = troubles
        if condition == LOOP_BLOCKED:
            # Set by the watchdog, whose thread must not block on writing the log.
            return
        for about in troubles.keys() - before.keys():
            trouble = troubles[about]
            log.warning(
                "condition.began", what=condition, about=about, message=trouble.message, detail=trouble.detail
            )
        for about in before.keys() - troubles.keys():
            seconds = round(now - before[about].since, 1)
            log.info("condition.ended", what=condition, about=about, seconds=seconds)

    def current(self) -> list[Trouble]:
        """Everything that is wrong, oldest first."""
        # A copy, as other threads may add a condition meanwhile; the inner dicts are replaced and never
        # changed.
        troubles = [trouble for by_about in list(self._troubles.values()) for trouble in by_about.values()]
        return sorted(troubles, key=lambda trouble: (trouble.since, trouble.condition, trouble.about))

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings of every condition, 0 if it does not hold."""
        # An alert on a series that does not exist never fires.
        values = dict.fromkeys(((kind, "") for kind in KINDS), 0.0)
        values |= {(trouble.condition, trouble.about): 1.0 for trouble in self.current()}
        yield Reading("condition", "1 while the condition holds", ("condition", "about"), values)


class DurationFilter:
    """Filters for things that have held long enough to be reported."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: dict[str, float] = {}

    def update(self, now: float, messages: Mapping[str, str]) -> dict[str, str]:
        """Return the messages that have held for at least the limit."""
        self._since = {about: self._since.get(about, now) for about in messages}
        return {about: text for about, text in messages.items() if now - self._since[about] >= self._limit_s}


class StallTimer:
    """Measures for how long there has been work without progress."""

    def __init__(self) -> None:
        self._since = 0.0
        self._progress: object = None

    def update(self, now: float, *, has_work: bool, progress: object) -> float:
        """Return the seconds without any change of `progress` while work was left."""
        if not has_work or progress != self._progress:
            self._since, self._progress = now, progress
        return now - self._since

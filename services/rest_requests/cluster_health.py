"""The health of the cluster as seen by this gateway: for clients, pages and external monitoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from det_contracts import subjects
from services.kit import conditions as names
from services.kit.cluster_monitor import LEASES, OWNERS
from services.kit.conditions import Conditions, Trouble
from services.kit.health import deduplicate
from services.kit.health_reports import HealthReports
from services.kit.lag import HasLag

UP, DEGRADED, DOWN = "up", "degraded", "down"
REQUIRED_SERVICES = ("searcher", "scheduler", subjects.INTAKE)
"""Services without which nothing new starts."""
BROKER_CONDITIONS = (names.BROKER_AWAY, names.STREAM_REFUSES, names.REPLICA_BEHIND)
SELF = "gateway"


class ClusterHealth:
    """The problems of the cluster, including this gateway's own."""

    def __init__(
        self,
        conditions: Conditions,
        signs: HealthReports,
        lag: Callable[[], Mapping[str, HasLag]] = dict,
    ) -> None:
        """`lag` tells what this gateway still has to read or to save, from which answers are made."""
        self._conditions = conditions
        self._signs = signs
        self._lag = lag

    def report(self, position: int) -> dict[str, Any]:
        """The health report for clients. `position` is how far this gateway has read the log."""
        troubles = self._troubles()
        parts = _parts(troubles)
        return {
            "status": DOWN if any(map(_stops_cluster, troubles)) else DEGRADED if troubles else UP,
            "position": position,
            # Pages say it earlier than `log_lags`, which takes a gateway out of service.
            "lateSeconds": round(max((lag.age_s for lag in self._lag().values()), default=0.0), 1),
            "time": _timestamp(time.time()),
            "database": parts["database"],
            "parts": parts,
            "reasons": [_reason(trouble) for trouble in troubles],
        }

    def parked(self) -> list[dict[str, str]]:
        """Records about which a service cannot decide, each with the reason. For operators only."""
        parked = self._troubles(names.DECISIONS_PARKED)
        return [_reason(trouble) | {"error": trouble.detail} for trouble in parked]

    def standing(self) -> list[dict[str, Any]]:
        """Services that stand still at an event that they cannot process. For operators only."""
        return [_standing(trouble) for trouble in self._troubles(names.EVENT_FAILS)]

    def rebuilding(self) -> dict[str, str]:
        """Services whose database is being rebuilt, each with how far that is."""
        return {trouble.program: trouble.message for trouble in self._troubles(names.REBUILDING)}

    def refused_rebuilds(self) -> dict[str, str]:
        """Services that refused to rebuild their database since they started, each with the reason."""
        return {trouble.program: trouble.detail for trouble in self._troubles(names.REBUILD_REFUSED)}

    def _troubles(self, *conditions: str) -> list[Trouble]:
        """Every problem in the cluster once, or those with one of some conditions."""
        troubles = deduplicate([*self._conditions.current(), *self._signs.current()])
        return [trouble for trouble in troubles if not conditions or trouble.condition in conditions]


def _stops_cluster(trouble: Trouble) -> bool:
    """Whether this problem prevents all new decisions or answers."""
    match trouble.condition:
        case names.BROKER_AWAY | names.DATABASE_FAILS:
            # Another program's broker or database stops that program; only this gateway's stops its answers.
            return trouble.program == SELF
        case names.STREAM_REFUSES:
            # A worker that cannot store anything may be the only one affected.
            return trouble.about in (subjects.CONTROL, LEASES) and not _is_worker(trouble)
        case names.NOBODY_LEADS:
            return trouble.about in REQUIRED_SERVICES
    return False


def _parts(troubles: Iterable[Trouble]) -> Mapping[str, str]:
    """The state of each part: down if it stops everything, degraded if it has any problem."""
    parts = dict.fromkeys(("broker", "database", *OWNERS, "workers"), UP)
    for trouble in troubles:
        part = _part(trouble)
        is_down = trouble.condition == names.NOBODY_LEADS or _stops_cluster(trouble)
        parts[part] = DOWN if is_down else max(parts.get(part, UP), DEGRADED, key=(UP, DEGRADED, DOWN).index)
    return parts


def _part(trouble: Trouble) -> str:
    if trouble.condition in BROKER_CONDITIONS and not _is_worker(trouble):
        return "broker"
    if trouble.condition == names.NOBODY_LEADS:
        return trouble.about
    if trouble.program == SELF and trouble.condition == names.DATABASE_FAILS:
        return "database"
    return "workers" if _is_worker(trouble) else trouble.program


def _is_worker(trouble: Trouble) -> bool:
    return trouble.program.startswith("worker ")


def _reason(trouble: Trouble) -> dict[str, str]:
    return {
        "condition": trouble.condition,
        "about": trouble.about,
        "program": trouble.program,
        "message": trouble.message,
        "since": _timestamp(trouble.since),
        "action": trouble.action,
    }


def _standing(trouble: Trouble) -> dict[str, Any]:
    stream, position, subject = trouble.about.split(" ", 2)
    return {
        "program": trouble.program,
        "stream": stream,
        "position": int(position),
        "subject": subject,
        "error": trouble.detail,
        "since": _timestamp(trouble.since),
        "action": trouble.action,
    }


def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

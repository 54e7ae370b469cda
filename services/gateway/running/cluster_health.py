"""The health of the cluster as seen by this gateway: for clients, pages and external monitoring."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from det_contracts import subjects
from services.kit import conditions as names
from services.kit.cluster_look import LEASES, OWNERS
from services.kit.conditions import Conditions, Trouble
from services.kit.health import same_once
from services.kit.health_signs import Signs

UP, DEGRADED, DOWN = "up", "degraded", "down"
DECIDERS = ("searcher", "scheduler", subjects.INTAKE)
"""Services without which nothing new starts."""
BROKER_HAS = (names.BROKER_AWAY, names.STREAM_REFUSES, names.REPLICA_BEHIND)
ME = "gateway"


class ClusterHealth:
    """The problems of the cluster, including this gateway's own."""

    def __init__(self, conditions: Conditions, signs: Signs) -> None:
        self._conditions = conditions
        self._signs = signs

    def report(self, position: int) -> dict[str, Any]:
        """The health report for clients. `position` is how far this gateway has read the log."""
        wrong = same_once([*self._conditions.current(), *self._signs.current()])
        parts = _parts(wrong)
        return {
            "status": DOWN if any(map(_stops, wrong)) else DEGRADED if wrong else UP,
            "position": position,
            "time": _moment(time.time()),
            "database": parts["database"],
            "parts": parts,
            "reasons": [_reason(one) for one in wrong],
        }

    def parked(self) -> list[dict[str, str]]:
        """Records about which a service cannot decide, each with the reason. For operators only."""
        return [_reason(one) | {"error": one.detail} for one in self._all(names.DECISIONS_PARKED)]

    def standing(self) -> list[dict[str, Any]]:
        """Services that stand still at an event that they cannot process. For operators only."""
        return [_standing(one) for one in self._all(names.EVENT_FAILS)]

    def rebuilding(self) -> dict[str, str]:
        """Services whose database is being rebuilt, each with how far that is."""
        return {one.program: one.message for one in self._all(names.REBUILDING)}

    def _all(self, condition: str) -> list[Trouble]:
        wrong = same_once([*self._conditions.current(), *self._signs.current()])
        return [one for one in wrong if one.condition == condition]


def _stops(one: Trouble) -> bool:
    """Whether this problem prevents all new decisions or answers."""
    match one.condition:
        case names.BROKER_AWAY | names.DATABASE_FAILS:
            return one.program == ME
        case names.STREAM_REFUSES:
            # A worker that cannot store anything may be the only one affected.
            return one.about in (subjects.CONTROL, LEASES) and not _is_worker(one)
        case names.NOBODY_LEADS:
            return one.about in DECIDERS
    return False


def _parts(wrong: Iterable[Trouble]) -> Mapping[str, str]:
    """The state of each part: down if it stops everything, degraded if it has any problem."""
    parts = dict.fromkeys(("broker", "database", *OWNERS, "workers"), UP)
    for one in wrong:
        part = _part(one)
        gone = one.condition == names.NOBODY_LEADS or _stops(one)
        parts[part] = DOWN if gone else max(parts.get(part, UP), DEGRADED, key=(UP, DEGRADED, DOWN).index)
    return parts


def _part(one: Trouble) -> str:
    if one.condition in BROKER_HAS and not _is_worker(one):
        return "broker"
    if one.condition == names.NOBODY_LEADS:
        return one.about
    if one.program == ME and one.condition == names.DATABASE_FAILS:
        return "database"
    return "workers" if _is_worker(one) else one.program


def _is_worker(one: Trouble) -> bool:
    return one.program.startswith("worker ")


def _reason(one: Trouble) -> dict[str, str]:
    return {
        "condition": one.condition,
        "about": one.about,
        "program": one.program,
        "message": one.message,
        "since": _moment(one.since),
        "action": one.action,
    }


def _standing(one: Trouble) -> dict[str, Any]:
    stream, position, subject = one.about.split(" ", 2)
    return {
        "program": one.program,
        "stream": stream,
        "position": int(position),
        "subject": subject,
        "error": one.detail,
        "since": _moment(one.since),
        "action": one.action,
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""Streams and leases as the broker reports them. One process asks every few seconds, and all hear the answer.

A process that has not heard such a report for a while takes one and publishes it, so any process may fail.
Stream info is requested from the leaders, because only they know whether their replicas are current.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from det_contracts import commands, queries, subjects
from det_contracts.metrics_shards import FURTHER_SHARDS
from services.kit.conditions import DurationFilter
from services.kit.lease import BUCKET

LEASES = f"KV_{BUCKET}"
STREAMS = (*subjects.STREAM_SUBJECTS, LEASES)
OWNERS = tuple(sorted({*commands.OWNER_OF.values(), *queries.OWNER_OF.values(), subjects.INTAKE}))
SUBJECTS = {LEASES: f"$KV.{BUCKET}.>", subjects.CONTROL: subjects.decision("*")}
"""Subjects that are looked at by stream: what is held there, and who has ever decided."""
EVERY_S = 2.0
MAX_JITTER_S = 1.0
"""Maximum extra wait in seconds. Each listener picks a random part of it, so that usually only one asks."""
FRESH_S = 8.0
"""Age in seconds beyond which a report is stale."""
TIMEOUT_S = 2.0
NO_LEADER_S = 5.0
"""Seconds without a leader that are normal while a lease moves between replicas."""
REPLICA_S = 10.0
REFUSES_S = 5.0
GONE_S = 3.0
"""Silence in seconds after which a replica counts as gone. Its leader normally hears from it every second."""
UNREACHABLE_ERRORS = (NatsError, TimeoutError, OSError)


class StreamReport(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """One stream in one report."""

    last: int = 0
    """The stream's last position."""
    replicas: tuple[str, ...] = ()
    """For each replica that is not current: its name and how far behind it is."""
    problem: str = ""
    """Why there was no answer or nothing can be stored; empty if all is well."""


class ClusterReport(msgspec.Struct, frozen=True):
    """What one process saw."""

    streams: dict[str, StreamReport] = {}
    leaders: tuple[str, ...] = ()
    """Owners for which a replica holds the lease."""
    shards: tuple[str, ...] = ()
    """Owners that share the trials with the first metrics process."""


def evaluate(report: ClusterReport) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return what is wrong: owners without leader, streams with lagging replicas, streams without answer."""
    leases = report.streams.get(LEASES, StreamReport())
    why = ": the leases cannot be read" if leases.problem else ""
    owners = (*OWNERS, *report.shards)
    nobody = {owner: f"no {owner} replica leads{why}" for owner in owners if owner not in report.leaders}
    late = {
        name: f"copies of stream {name} are not current: {'; '.join(stream.replicas)}"
        for name, stream in report.streams.items()
        if stream.replicas
    }
    silent = {
        name: f"stream {name} cannot store anything"
        for name, stream in report.streams.items()
        if stream.problem
    }
    return nobody, late, silent


class ReportEvaluator:
    """Reports only what persists over several looks, not brief handovers."""

    def __init__(self) -> None:
        self._filters = DurationFilter(NO_LEADER_S), DurationFilter(REPLICA_S), DurationFilter(REFUSES_S)

    def update(self, now: float, report: ClusterReport | None) -> tuple[dict[str, str], ...]:
        """Return the findings of `evaluate` that have held long enough; nothing while there is no report."""
        findings = ({}, {}, {}) if report is None else evaluate(report)
        return tuple(
            duration_filter.update(now, wrong)
            for duration_filter, wrong in zip(self._filters, findings, strict=True)
        )


class ClusterMonitor:
    """Receives the newest report, and takes one if no other process does."""

    def __init__(
        self,
        connection: Client,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._patience_s = EVERY_S + MAX_JITTER_S * chance()
        self._last_heard_at = clock()
        self._last: ClusterReport | None = None

    @property
    def last(self) -> ClusterReport | None:
        """The newest report; None if it is too old."""
        return self._last if self._clock() - self._last_heard_at < FRESH_S else None

    async def run(self) -> None:
        """Listen for reports, and take one if none arrives, until cancelled."""
        subscription = await self._connection.subscribe(subjects.health_look(), cb=self._on_report)
        try:
            while True:
                due = self._last_heard_at + self._patience_s - self._clock()
                if due > 0 or not self._connection.is_connected:
                    await asyncio.sleep(max(due, 0.2))
                    continue
                # Stored before it is published: without a broker that forwards it, this process still knows
                # what it saw.
                self._store(await collect(self._connection))
                with contextlib.suppress(*UNREACHABLE_ERRORS):
                    await self._connection.publish(subjects.health_look(), msgspec.json.encode(self._last))
        finally:
            with contextlib.suppress(*UNREACHABLE_ERRORS):
                await subscription.unsubscribe()

    async def _on_report(self, message: Msg) -> None:
        with contextlib.suppress(msgspec.MsgspecError):
            self._store(msgspec.json.decode(message.data, type=ClusterReport))

    def _store(self, report: ClusterReport) -> None:
        self._last, self._last_heard_at = report, self._clock()


async def collect(connection: Client) -> ClusterReport:
    """Ask the broker about every stream and for the current leaders."""
    infos = dict(
        zip(STREAMS, await asyncio.gather(*(_info(connection, name) for name in STREAMS)), strict=True)
    )
    lease_subjects = infos[LEASES].get("state", {}).get("subjects") or {}
    streams = {name: _stream_report(info) for name, info in infos.items()}
    decided = infos[subjects.CONTROL].get("state", {}).get("subjects") or {}
    shards = tuple(owner for owner in FURTHER_SHARDS if subjects.decision(owner) in decided)
    return ClusterReport(
        streams, tuple(sorted(subject.rpartition(".")[2] for subject in lease_subjects)), shards
    )


async def _info(connection: Client, stream: str) -> Mapping[str, Any]:
    body = {"subjects_filter": SUBJECTS[stream]} if stream in SUBJECTS else {}
    try:
        reply = await connection.request(
            f"$JS.API.STREAM.INFO.{stream}", msgspec.json.encode(body), timeout=TIMEOUT_S
        )
        info: Mapping[str, Any] = msgspec.json.decode(reply.data)
    except NoRespondersError:
        return {"error": {"description": "the broker offers no streams"}}
    except TimeoutError:
        return {"error": {"description": f"no answer within {TIMEOUT_S:.0f} s"}}
    except (*UNREACHABLE_ERRORS, msgspec.MsgspecError) as error:
        return {"error": {"description": repr(error)}}
    return info


def _stream_report(info: Mapping[str, Any]) -> StreamReport:
    if "error" in info:
        return StreamReport(problem=str(info["error"].get("description", "the broker gives no reason")))
    copies = (info.get("cluster") or {}).get("replicas") or ()
    late = [_describe_lag(copy) for copy in copies if _is_gone(copy) or not copy.get("current")]
    wanted = int(info["config"].get("num_replicas", 1))
    # A broker that was removed, or never joined, is not in the list at all.
    missing = wanted - 1 - len(copies)
    if missing > 0:
        late.append(f"{missing} more are missing")
    here = 1 + sum(not _is_gone(copy) for copy in copies)
    # A leader that has lost its replicas still answers, but stores nothing.
    problem = f"only {here} of its {wanted} copies are present" if 2 * here <= wanted else ""
    return StreamReport(int(info["state"]["last_seq"]), tuple(late), problem)


def _silent_s(copy: Mapping[str, Any]) -> float:
    return float(copy.get("active", 0)) / 1e9


def _is_gone(copy: Mapping[str, Any]) -> bool:
    # A dead broker still counts as current for some ten seconds; a new leader has never heard from it.
    never = not copy.get("current") and not copy.get("active")
    return bool(copy.get("offline")) or _silent_s(copy) > GONE_S or never


def _describe_lag(copy: Mapping[str, Any]) -> str:
    how = "is offline" if copy.get("offline") else f"is {copy.get('lag', 0)} operations behind"
    since = f", last heard of {_silent_s(copy):.0f} s ago" if _silent_s(copy) else ""
    return f"{copy.get('name', 'one')} {how}{since}"

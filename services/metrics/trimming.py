"""Periodically checks whether log lines or curves are too old or too many. The service decides."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.problems import Refused
from services.kit.log import OutcomeUnknown
from services.kit.parts import Parts, settings_of
from services.kit.rules import Call
from services.metrics.commands import Drop, Trim
from services.metrics.logs.retention import excess_through, expired_through
from services.metrics.reports.retention import find_silent_trials
from services.metrics.settings import MetricsSettings

POLL_EVERY_S = 60.0
COMMAND_TIMEOUT_S = 5.0
DAY_S = 86_400.0
MIB = 1024 * 1024


async def trim_logs(parts: Parts) -> None:
    """Trim log lines while this replica leads. Returns at once if everything is kept."""
    settings = settings_of(parts, MetricsSettings)
    if not (settings.log_keep_days or settings.log_keep_mib):
        return
    await parts.runner.ready.wait()
    while True:
        if parts.is_leader():
            now = time.time()
            found = await parts.database.read(lambda c, now=now: required_trim(c, settings, now))  # type: ignore[misc]
            await _send_command(parts, found, now)
        await asyncio.sleep(POLL_EVERY_S)


def required_trim(connection: sa.Connection, settings: MetricsSettings, now: float) -> Trim:
    """The trimming that the settings require."""
    days, mib = settings.log_keep_days, settings.log_keep_mib
    old = Trim(
        expired_through(connection, now - days * DAY_S, now) if days else 0, f"older than {days:g} days"
    )
    many = Trim(excess_through(connection, mib * MIB) if mib else 0, f"more than {mib} MiB are stored")
    return max(old, many, key=lambda trim: trim.through)


async def drop_points(parts: Parts) -> None:
    """Drop curves while this replica leads. Returns at once if everything is kept."""
    settings = settings_of(parts, MetricsSettings)
    days = settings.metric_keep_days
    if not days:
        return
    await parts.runner.ready.wait()
    while True:
        if parts.is_leader():
            now, through = time.time(), parts.runner.positions[subjects.REPORTS]
            silent = await parts.database.read(partial(find_silent_trials, before=now - days * DAY_S))
            if silent:
                reason = f"the trial has ended, and its last report is older than {days:g} days"
                await _send_command(parts, Drop(silent, through, reason), now)
        await asyncio.sleep(POLL_EVERY_S)


async def _send_command(parts: Parts, command: Trim | Drop, now: float) -> None:
    try:
        await parts.runner.command(command, Call(f"{command.user}-{command.through}", now), COMMAND_TIMEOUT_S)
    except (Refused, OutcomeUnknown):
        return

"""Periodically checks whether log lines or curves are too old or too many. The service decides."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import Any

import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.problems import Refused
from det_contracts.queries import StoredLines
from services.kit.log import OutcomeUnknown
from services.kit.parts import Parts, settings_of
from services.kit.rules import Call
from services.metrics.commands import Drop, Trim
from services.metrics.domain import shard_of_trial
from services.metrics.logs.retention import excess_through, expired_through, stored_lines
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
    if settings.metrics_shard != 1:
        # The first shard decides for all.
        return
    while True:
        if parts.is_leader():
            now = time.time()
            with contextlib.suppress(Refused):
                stored = await _stored_lines(parts, settings, now)
                work = partial(required_trim, settings=settings, stored=stored)
                await _send_command(parts, await parts.database.read(work), now)
        await asyncio.sleep(POLL_EVERY_S)


async def _stored_lines(parts: Parts, settings: MetricsSettings, now: float) -> dict[str, Any]:
    """The lines of all shards. Raises `Refused` while one is away."""
    query = StoredLines(before=now - settings.log_keep_days * DAY_S, now=now)
    if settings.metrics_shards == 1:
        return await parts.database.read(partial(stored_lines, query=query))
    stored: dict[str, Any] = (await parts.bus_client.query(query)).value
    return stored


def required_trim(connection: sa.Connection, settings: MetricsSettings, stored: dict[str, Any]) -> Trim:
    """The trimming that the settings require, given what all shards have stored."""
    days, mib = settings.log_keep_days, settings.log_keep_mib
    old = Trim(expired_through(stored) if days else 0, f"older than {days:g} days")
    through = 0
    if mib and stored["bytes"] > mib * MIB:
        # Each shard has its part of every time, so what goes here is measured by the part of all that stays.
        own = stored_lines(connection, StoredLines(before=0.0, now=0.0))["bytes"] or 0
        through = excess_through(connection, mib * MIB * own // stored["bytes"])
    return max(old, Trim(through, f"more than {mib} MiB are stored"), key=lambda trim: trim.through)


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
            trial_ids = await parts.database.read(partial(find_silent_trials, before=now - days * DAY_S))
            # After the query, which awaits: the state may have been loaded anew meanwhile.
            state, shard = parts.runner.state, settings.metrics_shard
            silent = tuple(id for id in trial_ids if shard_of_trial(state, id) == shard)
            if silent:
                reason = f"the trial has ended, and its last report is older than {days:g} days"
                await _send_command(parts, Drop(silent, through, reason), now)
        await asyncio.sleep(POLL_EVERY_S)


async def _send_command(parts: Parts, command: Trim | Drop, now: float) -> None:
    try:
        await parts.runner.command(command, Call(f"{command.user}-{command.through}", now), COMMAND_TIMEOUT_S)
    except (Refused, OutcomeUnknown):
        return

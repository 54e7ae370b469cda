"""How the shards agree on their number: the first one records it, and then each records that it follows.

Nothing of REPORTS and LOGS is read before all have joined (`holds_streams`). A process of the old number that
still runs can no longer decide then, because its shard's fence has moved on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from functools import partial
from typing import Any

import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.metrics_shards import owner_of_shard
from det_contracts.problems import Refused
from services.kit.database import POSITIONS
from services.kit.log import OutcomeUnknown, Stored
from services.kit.parts import Parts
from services.kit.rules import Call, Key
from services.kit.settings import BadSettings
from services.metrics.commands import Join, Share
from services.metrics.domain import Sharing, State, shard_of_task, shard_of_trial, sharing_of
from services.metrics.domain.state import experiment_of_task
from services.metrics.logs.tables import TASKS
from services.metrics.reports.tables import HOMES, TRIALS
from services.metrics.settings import MetricsSettings

POLL_EVERY_S = 0.1
COMMAND_TIMEOUT_S = 5.0
MAX_ID_DIGITS = 17
"""Maximum number of digits of a trial id in a subject."""


def holds_streams(state: State, shards: int) -> bool:
    """Whether reports and lines must not be read yet: not all shards follow this number."""
    sharing = sharing_of(state.sharing)
    return sharing.shards != shards or not sharing.is_complete


def skips_message(state: State, message: Stored, shard: int) -> bool:
    """Whether a message of REPORTS or LOGS is another shard's, judged by its subject alone.

    The first shard reads, and counts, what is on no trial's subject.
    """
    stream, _, rest = message.subject.partition(".")
    if stream == "logs":
        return shard_of_task(state, rest) != shard
    id = rest.partition(".")[0]
    is_id = id.isascii() and id.isdecimal() and len(id) <= MAX_ID_DIGITS
    return (shard_of_trial(state, int(id)) if is_id else 1) != shard


async def agree(parts: Parts, settings: MetricsSettings) -> None:
    """Record what the settings ask for, and refuse to run beside a log that says otherwise.

    Raises `BadSettings` if the log has more shards than the settings.
    """
    changed = asyncio.Event()

    def on_changed(keys: Collection[Key]) -> None:
        if any(kind == "sharing" for kind, _ in keys):
            changed.set()

    parts.saver.watch(on_changed, changed.set)
    await parts.database.read(partial(check_database, owner=owner_of_shard(settings.metrics_shard)))
    while True:
        sharing = sharing_of(parts.runner.state.sharing)
        check(sharing, settings)
        parts.waiting = missing(sharing, settings)
        # Not on an old state: the newest stage, or another shard's joining, may not be folded yet.
        if parts.waiting and parts.is_leader() and parts.runner.decider.caught_up:
            await _take_step(parts, sharing, settings)
        if not parts.waiting and parts.runner.ready.is_set():
            changed.clear()
            await changed.wait()
        else:
            await asyncio.sleep(POLL_EVERY_S)


def check(sharing: Sharing, settings: MetricsSettings) -> None:
    """Raise `BadSettings` if the log has more shards than the settings."""
    if sharing.shards > settings.metrics_shards:
        raise BadSettings(
            f"STEADFAST_METRICS_SHARDS is {settings.metrics_shards}, but {sharing.shards} metrics processes "
            f"share the trials, by the log. Set it to {sharing.shards} for all of them: their number can "
            "grow, and not shrink, because each holds the reports of its trials"
        )


def check_database(connection: sa.Connection, owner: str) -> None:
    """Raise `BadSettings` if another shard has written into the database."""
    others = set(connection.scalars(sa.select(POSITIONS.c.owner))) - {owner}
    if others:
        raise BadSettings(
            f"STEADFAST_DATABASE_URL of {owner} is the database of {', '.join(sorted(others))}: each metrics "
            "process needs its own SQLite file. In PostgreSQL, each has its own schema"
        )


def missing(sharing: Sharing, settings: MetricsSettings) -> str:
    """What reports and lines wait for, as a sentence; empty if they are read."""
    if sharing.shards < settings.metrics_shards:
        return f"metrics is to record that {settings.metrics_shards} processes share the trials"
    if sharing.is_complete:
        return ""
    shards = set(range(1, sharing.shards + 1)) - set(sharing.joined)
    names = ", ".join(owner_of_shard(shard) for shard in sorted(shards))
    return f"reports and log lines wait until all metrics processes have joined; missing: {names}"


async def _take_step(parts: Parts, sharing: Sharing, settings: MetricsSettings) -> None:
    command: Share | Join = Join(settings.metrics_shard, settings.metrics_shards)
    try:
        if sharing.shards < settings.metrics_shards:
            # One of them must: two that record the same number could name different first trials.
            if settings.metrics_shard != 1:
                return
            # The newest numbers are read from the tables, which are behind the fold.
            await parts.saver.wait_for_position(parts.runner.positions[subjects.CONTROL])
            trial, experiment = await parts.database.read(first_new)
            command = Share(settings.metrics_shards, trial, experiment)
        call = Call(f"{type(command).__name__.lower()}-{settings.metrics_shards}", time.time())
        await parts.runner.command(command, call, COMMAND_TIMEOUT_S)
    except (Refused, OutcomeUnknown, TimeoutError):
        return


def first_new(connection: sa.Connection) -> tuple[int, int]:
    """The numbers after the newest known trial, and after the newest experiment of a trial or log line."""
    trials: list[Any] = [
        connection.execute(sa.select(sa.func.max(table.c.trial_id))).scalar() for table in (HOMES, TRIALS)
    ]
    newest = connection.execute(sa.select(sa.func.max(HOMES.c.experiment_id))).scalar() or 0
    for id in connection.scalars(sa.select(TASKS.c.task_id)):
        newest = max(newest, experiment_of_task(id))
    return max(id or 0 for id in trials) + 1, newest + 1

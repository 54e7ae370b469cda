"""Keeps a copy of the database while this process leads, and says when that fails."""

from __future__ import annotations

import asyncio

import structlog
from sqlalchemy.exc import OperationalError

from services.kit import conditions
from services.kit.database import database_message
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log import FenceLost, LogError
from services.kit.parts import Parts, settings_of
from services.metrics.copies.copier import Copier
from services.metrics.copies.store import BadCopy, CopyStore, store_of
from services.metrics.settings import MetricsSettings

LOOK_EVERY_S = 30.0
"""Seconds between two looks whether a copy is due, unless copies are to be made more often."""
HOUR_S, DAY_S = 3600.0, 86_400.0
RETRYABLE_ERRORS = (OSError, BadCopy, LogError, OperationalError, *READ_ERRORS)
log = structlog.get_logger()


async def keep_copies(parts: Parts) -> None:
    """Copy the database whenever a copy is due. Returns at once if it is not to be copied."""
    settings = settings_of(parts, MetricsSettings)
    if not settings.metrics_store:
        return
    await parts.runner.ready.wait()
    owner, pause = parts.runner.rules.owner, min(LOOK_EVERY_S, settings.metrics_copy_hours * HOUR_S)
    copier: Copier | None = None
    while True:
        failure, missing = "", dict[str, int]()
        if parts.is_leader():
            try:
                if copier is None and (store := await store_of(settings, owner, parts.journal)):
                    copier = _copier(parts, settings, store)
                if copier is not None:
                    await copier.copy_if_due(parts.saver.saved_positions)
                    missing = copier.missing
            except FenceLost:
                # Another process has made a copy; look again the next time.
                failure = ""
            except RETRYABLE_ERRORS as error:
                failure = database_message(error) if isinstance(error, OperationalError) else str(error)
                log.error("copy.failed", error=failure)
        _report(parts, failure, missing)
        await asyncio.sleep(pause)


def _copier(parts: Parts, settings: MetricsSettings, store: CopyStore) -> Copier:
    return Copier(
        parts.runner.rules.owner,
        parts.database,
        parts.journal,
        parts.stream,
        store,
        interval_s=settings.metrics_copy_hours * HOUR_S,
        keep_s=settings.metrics_copy_keep_days * DAY_S,
    )


def _report(parts: Parts, failure: str, missing: dict[str, int]) -> None:
    failing = {"": "its database cannot be copied to its object store"} if failure else {}
    for stream, count in missing.items():
        failing[stream] = (
            f"the newest copy of its database lacks {count} messages that {stream} no longer holds"
        )
    parts.conditions.set_condition(conditions.COPY_FAILS, failing, {"": failure})

"""States this worker's facts to the intake, which appends them to the log."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import msgspec
import structlog

from det_contracts import codec, subjects
from det_contracts.events.worker import AllocationExited, AllocationStarted
from det_contracts.limits import TEXT_CHARACTERS
from services.kit.log import Draft, Log, NotConfirmed, TooLarge

RETRY_S = 0.5
"""Pause in seconds before a fact is stated again. Some refusals come at once."""

log = structlog.get_logger()


def new_id() -> str:
    """128 random bits, so that nobody can guess an id and use it before its owner does."""
    return os.urandom(16).hex()


def draft(worker_id: str, event: Any, at: float | None = None, trace: str = "") -> Draft:
    """A message that states a fact, at `at` seconds since the epoch (default: now).

    The broker drops repeats of this message for two minutes; consumers drop later ones.
    """
    id = new_id()
    at = time.time() if at is None else at
    if isinstance(event, AllocationExited):
        event = msgspec.structs.replace(event, message=_truncate_message(event.message))
    body = codec.encode(event, id=id, actor=f"worker:{worker_id}", at=at)
    return Draft(subjects.witness_of_worker(worker_id), body, id, trace)


async def append_fact(
    journal: Log, worker_id: str, event: AllocationStarted | AllocationExited, trace: str = ""
) -> None:
    """State a fact, again and again until it is stored: nobody else knows it. Raises `TooLarge`."""
    fact = draft(worker_id, event, trace=trace)
    while True:
        try:
            await journal.append(fact)
            return
        except TooLarge:
            raise
        except NotConfirmed as error:
            what = codec.kind_of(event).name
            log.warning("fact.kept_back", what=what, allocation=event.allocation_id, error=str(error))
        await asyncio.sleep(RETRY_S)


def _truncate_message(message: str) -> str:
    """Truncate a message to what a fact may hold: it may be an error that quotes a whole file."""
    return message.replace("\0", "\u2400")[:TEXT_CHARACTERS]

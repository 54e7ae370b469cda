"""Facts of this worker on their way to the log, by way of the intake."""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec

from det_contracts import codec, subjects
from det_contracts.events.worker import AllocationExited
from det_contracts.limits import TEXT_CHARACTERS
from services.kit.log import Draft


def new_id() -> str:
    """128 random bits: nobody can guess it, and so use it before its owner does."""
    return os.urandom(16).hex()


def draft(worker_id: str, event: Any, at: float | None = None, trace: str = "") -> Draft:
    """A message that states a fact, at `at` seconds since the epoch, by default now.

    Repeats of this very message are dropped by the broker, for two minutes; later ones by who listens.
    """
    id = new_id()
    at = time.time() if at is None else at
    if isinstance(event, AllocationExited):
        event = msgspec.structs.replace(event, message=_said(event.message))
    body = codec.encode(event, id=id, actor=f"worker:{worker_id}", at=at)
    return Draft(subjects.witness_of_worker(worker_id), body, id, trace)


def _said(message: str) -> str:
    """What went wrong, as much of it as a fact may hold: it may be an error with a whole file in it."""
    return message.replace("\0", "\u2400")[:TEXT_CHARACTERS]

"""The event log with causes of events, and the timelines of experiments (our addition)."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.envelope import Unknown
from det_contracts.expconf import MASK, masked
from det_contracts.problems import invalid, not_found
from services.catalogue.api_values import instant, maybe_instant
from services.gateway.determined.routes.why import StepsAsked, limit_of, reader_of, step_shown
from services.gateway.http.visit import Asked
from services.kit.records import read_event
from services.web.query import Asks
from services.why.timeline import totals

router = APIRouter()
OWNERS = (
    "searcher",
    "scheduler",
    "metrics",
    "checkpoints",
    "webhooks",
    "gateway",
    "worker",
    "trial",
    "archive",
)
SECRETS = ("password", "salt", "hashed", "token", "secret_key", "access_key", "original_config")
"""Fields of events that are always masked. Configurations mask their own secrets."""


class EventsAsked(StepsAsked):
    """GET /events"""

    owner: str = ""


@router.get("/events")
async def events(visit: Asked, query: Asks[EventsAsked]) -> Response:
    """The newest events before a position, oldest first, optionally of one owner."""
    owner = query.owner
    if owner and owner not in OWNERS:
        raise invalid(f"owner must be one of {', '.join(OWNERS)}, not '{owner}'")
    where = [f"control.{owner}.>"] if owner else []
    told = await reader_of(visit).latest(query.before or None, limit_of(query), where)
    return visit.answer({"steps": [step_shown(one) for one in told.steps], "more": told.more})


@router.get("/events/{position}")
async def event(visit: Asked, position: int) -> Response:
    """One event: as a sentence, as logged but without secrets, and the steps that led to it."""
    reader = reader_of(visit)
    message = await reader.at(position)
    if message is None:
        raise not_found("event at position", position)
    recorded = read_event(message)
    if type(recorded.event) is Unknown:
        raise not_found("readable event at position", position)
    told = await reader.led_to(recorded)
    shown = {
        "position": position,
        "subject": message.subject,
        "record": _shown(msgspec.json.decode(message.body)),
        "steps": [step_shown(one) for one in told.steps],
    }
    return visit.answer(shown)


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: MASK if key in SECRETS and inner else masked(inner) if key == "config" else _shown(inner)
        for key, inner in value.items()
    }


@router.get("/experiments/{experiment_id}/timeline")
async def timeline(visit: Asked, experiment_id: int) -> Response:
    """How an experiment spent its time, with the total seconds of each activity."""
    visit.catalogue.experiment(experiment_id)
    found = await reader_of(visit).timeline(experiment_id)
    shown = [
        {
            "what": one.what,
            "since": instant(one.since),
            "until": maybe_instant(one.until),
            "actor": one.actor,
            "reason": one.reason,
            "position": one.position,
        }
        for one in found
    ]
    return visit.answer({"stretches": shown, "seconds": totals(found, time.time())})

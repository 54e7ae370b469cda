"""The event log with causes of events, and the timelines of experiments (our addition)."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from starlette.responses import Response

from det_contracts.envelope import Unknown
from det_contracts.expconf import MASK, mask_secrets
from det_contracts.problems import invalid, not_found
from services.catalogue.api_values import format_optional_time, format_time
from services.kit.records import read_event
from services.rest_requests.api_call import Authenticated
from services.rest_routes.experiments.why import StepsQuery, log_reader, step_json, step_limit
from services.web.query import FromQuery
from services.web.routes import Routes
from services.why.timeline import totals

router = Routes()
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


class EventsQuery(StepsQuery):
    """GET /events"""

    owner: str = ""


@router.get("/events", ("read_log", "cluster"))
async def events(call: Authenticated, query: FromQuery[EventsQuery]) -> Response:
    """The newest events before a position, oldest first, optionally of one owner."""
    owner = query.owner
    if owner and owner not in OWNERS:
        raise invalid(f"owner must be one of {', '.join(OWNERS)}, not '{owner}'")
    where = [f"control.{owner}.>"] if owner else []
    explanation = await log_reader(call).latest_events(query.before or None, step_limit(query), where)
    return call.answer({"steps": [step_json(step) for step in explanation.steps], "more": explanation.more})


@router.get("/events/{position}", ("read_log", "cluster"))
async def event(call: Authenticated, position: int) -> Response:
    """One event: as a sentence, as logged but without secrets, and the steps that led to it."""
    reader = log_reader(call)
    message = await reader.message_at(position)
    if message is None:
        raise not_found("event at position", position)
    recorded = read_event(message)
    if type(recorded.event) is Unknown:
        raise not_found("readable event at position", position)
    explanation = await reader.explain_event(recorded)
    shown = {
        "position": position,
        "subject": message.subject,
        "record": _masked(msgspec.json.decode(message.body)),
        "steps": [step_json(step) for step in explanation.steps],
    }
    return call.answer(shown)


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: MASK if key in SECRETS and inner else mask_secrets(inner) if key == "config" else _masked(inner)
        for key, inner in value.items()
    }


@router.get("/experiments/{experiment_id}/timeline", ("view", "experiment"))
async def timeline(call: Authenticated, experiment_id: int) -> Response:
    """How an experiment spent its time, with the total seconds of each activity."""
    call.catalogue.experiment(experiment_id)
    periods = await log_reader(call).timeline(experiment_id)
    shown = [
        {
            "what": period.what,
            "since": format_time(period.since),
            "until": format_optional_time(period.until),
            "actor": period.actor,
            "reason": period.reason,
            "position": period.position,
        }
        for period in periods
    ]
    return call.answer({"stretches": shown, "seconds": totals(periods, time.time())})

"""Explains why something is in its state (our addition; see docs/why.md)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import Refused, invalid, not_found
from services.catalogue.api_values import instant
from services.catalogue.subjects import find
from services.gateway.http.visit import Asked, UserVisit
from services.web.query import Asking, Asks, Flag, Integer
from services.why.chain import Step, Told
from services.why.reader import Reader
from services.why.subject import Subject

router = APIRouter()
MOST_STEPS = 1000


class StepsAsked(Asking):
    """Query parameters that select steps of an explanation."""

    before: Integer = 0
    limit: Integer = 200


class WhyAsked(StepsAsked):
    """GET /why/{kind}/{id}"""

    all: Flag = False


@router.get("/why/{kind}/{id}")
async def why(visit: Asked, kind: str, id: str, query: Asks[WhyAsked]) -> Response:
    """The chain of causes, newest first. With `all`, the full story before a position, oldest first."""
    reader = reader_of(visit)
    subject = await _subject(visit, reader, kind, id)
    if query.all:
        told = await reader.story(subject, query.before or None, limit_of(query))
    else:
        told = await reader.chain(subject)
    if not told.steps and subject.kind in ("worker", "pool"):
        raise not_found(subject.kind, subject.id)
    return visit.answer(_shown(subject, told, await _waits_for(visit, subject)))


def reader_of(visit: UserVisit) -> Reader:
    """A reader of the log for one answer."""
    return Reader(visit.backend.journal, lambda allocation: _trial_of(visit, allocation))


async def _subject(visit: UserVisit, reader: Reader, kind: str, id: str) -> Subject:
    try:
        found = find(visit.catalogue.state, kind, id)
    except Refused:
        gone = kind == "experiment" and id.isdecimal() and visit.sight.everything
        deleted = await reader.deleted(int(id)) if gone else None
        if deleted is None:
            raise
        return deleted
    if found.experiment_id > 0:
        visit.see("experiment", found.experiment_id)
    else:
        visit.see("run", *found.allocation_ids)
    return found


def limit_of(query: StepsAsked) -> int:
    """The requested number of steps. Raises `Refused` (400)."""
    limit = query.limit
    if not 1 <= limit <= MOST_STEPS:
        raise invalid(f"limit must be from 1 to {MOST_STEPS}, not {limit}")
    return limit


def _trial_of(visit: UserVisit, allocation_id: str) -> int | None:
    known = visit.catalogue.state.allocations.get(allocation_id)
    return known.trial_id if known else None


async def _waits_for(visit: UserVisit, subject: Subject) -> str:
    """What the subject's runs are waiting for, according to the scheduler."""
    if subject.kind == "pool":
        rows = await visit.peers.pools()
        return next((row.growth for row in rows if row.name == subject.id), "")
    if subject.state not in ("QUEUED", "PENDING"):
        return ""
    waiting = await visit.peers.waiting(subject.experiment_id)
    own = [reason for id, reason in waiting.items() if id in subject.allocation_ids]
    return next(iter(own or (list(waiting.values()) if subject.trial_id is None else ())), "")


def _shown(subject: Subject, told: Told, waits_for: str) -> dict[str, Any]:
    return {
        "subject": {"kind": subject.kind, "id": subject.id},
        "state": subject.state,
        "waitsFor": waits_for,
        "steps": [step_shown(one) for one in told.steps],
        "more": told.more,
    }


def step_shown(one: Step) -> dict[str, Any]:
    return {
        "position": one.position,
        "name": one.name,
        "time": instant(one.at),
        "actor": one.actor,
        "what": one.what,
        "reason": one.reason,
        "about": {"kind": one.about.kind, "id": one.about.id},
        "aside": one.aside,
        "because": list(one.because),
    }

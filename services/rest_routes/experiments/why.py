"""Explains why something is in its state (our addition; see docs/why.md)."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from det_contracts import ids
from det_contracts.problems import Refused, invalid, not_found
from services.catalogue.api_values import format_time
from services.catalogue.why_subjects import find_subject
from services.people import users
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.path_parameters import SubjectKind
from services.web.query import Flag, FromQuery, Integer, QueryModel
from services.web.routes import Routes
from services.why.chain import Explanation, Step
from services.why.reader import Reader
from services.why.subject import Subject

router = Routes()
MAX_STEPS = 1000


class StepsQuery(QueryModel):
    """Query parameters that select steps of an explanation."""

    before: Integer = 0
    limit: Integer = 200


class WhyQuery(StepsQuery):
    """GET /why/{kind}/{id}"""

    all: Flag = False


@router.get("/why/{kind}/{id}", ("view", "listed"))
async def why(call: Authenticated, kind: SubjectKind, id: str, query: FromQuery[WhyQuery]) -> Response:
    """The chain of causes, newest first. With `all`, the full story before a position, oldest first."""
    reader = log_reader(call)
    subject = await _subject(call, reader, kind, id)
    if query.all:
        explanation = await reader.full_history(subject, query.before or None, step_limit(query))
    else:
        explanation = await reader.explain_state(subject)
    if not explanation.steps and subject.kind in ("worker", "pool"):
        raise not_found(subject.kind, subject.id)
    return call.answer(_shown(subject, explanation, await _waits_for(call, subject)))


def log_reader(call: UserCall) -> Reader:
    """A reader of the log for one answer."""
    state = call.catalogue.state
    return Reader(
        call.backend.journal,
        trial_of=lambda allocation: _trial_of(call, allocation),
        take_turn=call.take_turn,
        username_of=lambda id: users.name_of(state, id),
    )


async def _subject(call: UserCall, reader: Reader, kind: str, id: str) -> Subject:
    try:
        subject = find_subject(call.catalogue.state, kind, id)
    except Refused:
        number = ids.parse_number(id)
        # The workspace of a deleted experiment is not known any more, so only those who see everything may
        # read its story.
        gone = kind == "experiment" and call.visibility.includes_everything
        deleted = await reader.find_deleted_experiment(number) if gone and number is not None else None
        if deleted is None:
            raise
        return deleted
    if subject.experiment_id > 0:
        call.check_view("experiment", subject.experiment_id)
    else:
        call.check_view("run", *subject.allocation_ids)
    return subject


def step_limit(query: StepsQuery) -> int:
    """The requested number of steps. Raises `Refused` (400)."""
    limit = query.limit
    if not 1 <= limit <= MAX_STEPS:
        raise invalid(f"limit must be from 1 to {MAX_STEPS}, not {limit}")
    return limit


def _trial_of(call: UserCall, allocation_id: str) -> int | None:
    allocation = call.catalogue.state.allocations.get(allocation_id)
    return allocation.trial_id if allocation else None


async def _waits_for(call: UserCall, subject: Subject) -> str:
    """What the subject's runs are waiting for, according to the scheduler."""
    if subject.kind == "pool":
        rows = await call.peers.pools()
        return next((row.growth for row in rows if row.name == subject.id), "")
    if subject.state not in ("QUEUED", "PENDING"):
        return ""
    waiting = await call.peers.waiting(subject.experiment_id)
    own = [reason for id, reason in waiting.items() if id in subject.allocation_ids]
    return next(iter(own or (list(waiting.values()) if subject.trial_id is None else ())), "")


def _shown(subject: Subject, explanation: Explanation, waits_for: str) -> dict[str, Any]:
    return {
        "subject": {"kind": subject.kind, "id": subject.id},
        "state": subject.state,
        "waitsFor": waits_for,
        "steps": [step_json(step) for step in explanation.steps],
        "more": explanation.more,
    }


def step_json(step: Step) -> dict[str, Any]:
    return {
        "position": step.position,
        "name": step.name,
        "time": format_time(step.at),
        "actor": step.actor,
        "what": step.what,
        "reason": step.reason,
        "about": {"kind": step.about.kind, "id": step.about.id},
        "aside": step.aside,
        "because": list(step.because),
    }

"""The audit log: a row for each event caused by a person's command, kept beside the fold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts import codec
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from services.why.history import History, about
from services.why.sentences import words

AUDIT = sa.Table(
    "audit",
    sa.MetaData(),
    sa.Column("position", sa.BigInteger, primary_key=True),
    sa.Column("at", sa.Float, nullable=False, index=True),
    sa.Column("username", sa.String, nullable=False, index=True),
    sa.Column("event", sa.String, nullable=False),
    sa.Column("about", sa.String, nullable=False, index=True),
    sa.Column("what", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
)
ACTOR = "user:"
PROGRAMS = {"", "configuration", "scheduler", "metrics"}
"""Actors that are parts of the platform, and the empty name of commands by nobody in particular."""
NOBODYS_DOING = ("trial.", "gateway.allocation.", "gateway.session.renewed")
"""Events stated by scripts through the REST API, and side effects of other requests."""
CREATIONS = "creation"
"""Owners' records of requests with an `Idempotency-Key`. The created thing has an entry of its own."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects rows of the audit log."""

    users: tuple[str, ...] = ()
    """User names; empty for all users."""
    event: str = ""
    """Prefix of the event's name, such as `searcher.experiment`."""
    about: str = ""
    """The thing that the event is about, such as `experiment 7`."""
    since: float | None = None
    until: float | None = None


def rows(events: Iterable[Recorded]) -> list[dict[str, Any]]:
    """The rows of those events that people caused. A row contains no more of an event than its sentence."""
    return [_row(one) for one in events if _is_somebodys(one)]


def _is_somebodys(recorded: Recorded) -> bool:
    if not recorded.actor.startswith(ACTOR) or isinstance(recorded.event, Decision | Unknown):
        return False
    name = codec.kind_of(recorded.event).name
    if recorded.actor.removeprefix(ACTOR) in PROGRAMS or name.split(".")[1] == CREATIONS:
        return False
    return not name.startswith(NOBODYS_DOING)


def _row(recorded: Recorded) -> dict[str, Any]:
    thing, said = about(recorded.event), words(recorded.event, History())
    return {
        "position": recorded.position,
        "at": recorded.at,
        "username": recorded.actor.removeprefix(ACTOR),
        "event": codec.kind_of(recorded.event).name,
        "about": f"{thing.kind} {thing.id}",
        "what": said.what,
        "reason": said.reason,
    }


def newest(
    connection: sa.Connection, wanted: Filter, limit: int, before: int | None = None
) -> list[dict[str, Any]]:
    """Rows before a position, newest first."""
    table = AUDIT.c
    query = sa.select(AUDIT).where(*_conditions(wanted)).order_by(table.position.desc()).limit(limit)
    query = query if before is None else query.where(table.position < before)
    return [dict(row) for row in connection.execute(query).mappings()]


def following(connection: sa.Connection, wanted: Filter, limit: int, after: int) -> list[dict[str, Any]]:
    """Rows after a position, oldest first."""
    table = AUDIT.c
    query = sa.select(AUDIT).where(*_conditions(wanted), table.position > after)
    found = connection.execute(query.order_by(table.position).limit(limit))
    return [dict(row) for row in found.mappings()]


def _conditions(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    table, found = AUDIT.c, list[sa.ColumnElement[bool]]()
    if wanted.users:
        found.append(table.username.in_(wanted.users))
    if wanted.event:
        found.append(table.event.startswith(wanted.event, autoescape=True))
    if wanted.about:
        found.append(table.about == wanted.about)
    if wanted.since is not None:
        found.append(table.at >= wanted.since)
    if wanted.until is not None:
        found.append(table.at < wanted.until)
    return found

"""The audit log: a row for each event caused by a person's command, kept beside the fold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts import codec
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision, gateway
from services.why.event_descriptions import describe
from services.why.history import History, about

AUDIT = sa.Table(
    "audit",
    sa.MetaData(),
    sa.Column("position", sa.BigInteger, primary_key=True),
    sa.Column("at", sa.Float, nullable=False, index=True),
    sa.Column("username", sa.String, nullable=False),
    sa.Column("event", sa.String, nullable=False),
    sa.Column("about", sa.String, nullable=False),
    sa.Column("what", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    # With the position: the newest of one user come without sorting all that user ever did.
    sa.Index("audit_by_user", "username", "position"),
    sa.Index("audit_by_thing", "about", "position"),
)
ACTOR = "user:"
PLATFORM_ACTORS = {"", "configuration", "scheduler", "metrics"}
"""Actors that are parts of the platform, and the empty name of commands by nobody in particular."""
SIDE_EFFECTS = ("trial.", "gateway.allocation.", "gateway.session.renewed")
"""Events stated by scripts through the REST API, and side effects of other requests."""
ABOUT_ONESELF = (gateway.SessionOpened, gateway.SignedIn, gateway.SettingsSet, gateway.ProjectViewed)
"""Events about the user who caused them, whose name is therefore known."""
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
    return [_row(event) for event in events if _is_caused_by_user(event)]


def _is_caused_by_user(recorded: Recorded) -> bool:
    if not recorded.actor.startswith(ACTOR) or isinstance(recorded.event, Decision | Unknown):
        return False
    name = codec.kind_of(recorded.event).name
    if recorded.actor.removeprefix(ACTOR) in PLATFORM_ACTORS or name.split(".")[1] == CREATIONS:
        return False
    return not name.startswith(SIDE_EFFECTS)


def _row(recorded: Recorded) -> dict[str, Any]:
    username = recorded.actor.removeprefix(ACTOR)
    history = History(lambda _: username if isinstance(recorded.event, ABOUT_ONESELF) else None)
    subject, description = about(recorded.event), describe(recorded.event, history)
    return {
        "position": recorded.position,
        "at": recorded.at,
        "username": username,
        "event": codec.kind_of(recorded.event).name,
        "about": f"{subject.kind} {subject.id}",
        "what": description.what,
        "reason": description.reason,
    }


def rows_before(
    connection: sa.Connection, criteria: Filter, limit: int, before: int | None = None
) -> list[dict[str, Any]]:
    """Rows before a position, newest first."""
    table = AUDIT.c
    query = sa.select(AUDIT).where(*_conditions(criteria)).order_by(table.position.desc()).limit(limit)
    query = query if before is None else query.where(table.position < before)
    return [dict(row) for row in connection.execute(query).mappings()]


def rows_after(connection: sa.Connection, criteria: Filter, limit: int, after: int) -> list[dict[str, Any]]:
    """Rows after a position, oldest first."""
    table = AUDIT.c
    query = sa.select(AUDIT).where(*_conditions(criteria), table.position > after)
    selected_rows = connection.execute(query.order_by(table.position).limit(limit))
    return [dict(row) for row in selected_rows.mappings()]


def _conditions(criteria: Filter) -> list[sa.ColumnElement[bool]]:
    table, conditions = AUDIT.c, list[sa.ColumnElement[bool]]()
    if criteria.users:
        conditions.append(table.username.in_(criteria.users))
    if criteria.event:
        conditions.append(table.event.startswith(criteria.event, autoescape=True))
    if criteria.about:
        conditions.append(table.about == criteria.about)
    if criteria.since is not None:
        conditions.append(table.at >= criteria.since)
    if criteria.until is not None:
        conditions.append(table.at < criteria.until)
    return conditions

"""Sessions and API tokens: opened, prolonged, closed, and forgotten when they can mean nothing any more."""

from __future__ import annotations

from itertools import islice

from det_contracts.commands import CloseSession, CreateToken, OpenSession, RenewSession, RevokeToken
from det_contracts.events.gateway import (
    AccessToken,
    SessionClosed,
    SessionOpened,
    SessionRenewed,
    SessionsForgotten,
    TokenRevoked,
)
from det_contracts.problems import Problem, Refused, invalid, not_found
from services.kit.rules import Call, Ruling
from services.people import users
from services.people.domain.state import People

MOST_SESSIONS = 1000
"""Of one user; for one more the one is closed that would end first."""
MOST_TOKENS = 100
SWEPT = 50
"""How many that are over are forgotten with each that begins."""
LONGEST_NAME = 100
LONGEST_DAYS = 366


def open_session(state: People, command: OpenSession, call: Call) -> Ruling:
    """Note that a user logged in, and forget what is over of theirs."""
    users.by_id(state, command.user_id)
    if command.session_id in state.open_sessions:
        return Ruling()
    fields = {name: getattr(command, name) for name in SessionOpened.__struct_fields__ if name != "reason"}
    opened = SessionOpened(**fields, reason=f"{command.user} logged in")
    return Ruling([opened, *_forgotten(state, command.user_id, call.at)])


def _forgotten(state: People, user_id: int, now: float) -> list[SessionsForgotten]:
    found = list(islice(state.sessions_of.scan(user_id), SWEPT))
    over = [id for _, until, id in found if until <= now]
    room = MOST_SESSIONS - state.sessions_of.count(user_id) + len(over)
    if room <= 0:
        over += [id for _, until, id in found if until > now][: 1 - room]
    if not over:
        return []
    floor = max(state.open_sessions[id].opened_at for id in over)
    why = "they are over" if room > 0 else f"they are over, or there are {MOST_SESSIONS} others"
    return [SessionsForgotten(user_id, tuple(over), floor, why)]


def renew_session(state: People, command: RenewSession, call: Call) -> Ruling:
    """Prolong a session that is used; one that is over stays over."""
    known = state.open_sessions.get(command.session_id)
    if known is None or known.closed_at is not None or not call.at < known.until < command.until:
        return Ruling()
    return Ruling([SessionRenewed(command.session_id, command.until, "it is used")])


def close_session(state: People, command: CloseSession, call: Call) -> Ruling:
    """Refuse a session's token from now on; doing so twice changes nothing."""
    known = state.open_sessions.get(command.session_id)
    if command.session_id in state.sessions or (known is not None and known.closed_at is not None):
        return Ruling()
    reason = f"revoked by {command.user}" if command.revoked else f"{command.user} logged out"
    return Ruling([SessionClosed(command.session_id, command.user, reason)])


def create_token(state: People, command: CreateToken, call: Call) -> Ruling:
    """Make an API token; of the secret only a digest comes here."""
    users.by_id(state, command.user_id)
    name = command.name
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise invalid(f"an API token needs a name of at most {LONGEST_NAME} printable characters")
    if not 0 < command.lives_s <= LONGEST_DAYS * 86400:
        raise invalid(f"an API token lives for more than nothing and at most {LONGEST_DAYS} days")
    known = [state.tokens[id] for _, _, id in state.tokens_of.scan(command.user_id)]
    over = [one for one in known if one.until <= call.at]
    alive = [one for one in known if one.until > call.at]
    if any(one.name == name for one in alive):
        raise Refused(Problem("already_exists", f"there is an API token '{name}' already; revoke it first"))
    if len(alive) >= MOST_TOKENS:
        raise Refused(Problem("exhausted", f"there are {MOST_TOKENS} API tokens; revoke some"))
    fields = {one: getattr(command, one) for one in ("token_id", "user_id", "name", "scope", "digest")}
    until, reason = call.at + command.lives_s, f"made by {command.user}"
    made = AccessToken(**fields, at=call.at, until=until, reason=reason)
    return Ruling([*(TokenRevoked(one.token_id, "it has expired") for one in over), made], command.token_id)


def revoke_token(state: People, command: RevokeToken, call: Call) -> Ruling:
    """Refuse an API token from now on."""
    if command.token_id not in state.tokens:
        raise not_found("API token", command.token_id)
    return Ruling([TokenRevoked(command.token_id, f"revoked by {command.user}")])

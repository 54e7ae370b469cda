"""Commands about sessions and API tokens: opening, extending and closing them, and removing old ones."""

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
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, not_found
from services.kit.names import check_name
from services.kit.rules import Call, Result
from services.people import users
from services.people.domain.state import People

MAX_SESSIONS = 1000
"""Maximum number of sessions per user. Opening another one removes the one that would end first."""
MAX_TOKENS = 100
FORGOTTEN_AT_ONCE = 50
"""Maximum number of old sessions to remove with each new one."""
MAX_NAME_CHARACTERS = 100
MAX_DAYS = 366


def open_session(state: People, command: OpenSession, call: Call) -> Result:
    """Record that a user logged in, and remove their old sessions."""
    users.by_id(state, command.user_id)
    # A sign-in that a browser completes twice has the same id, and must not open a closed session again.
    if command.session_id in state.open_sessions:
        return Result()
    fields = {name: getattr(command, name) for name in SessionOpened.__struct_fields__ if name != "reason"}
    opened = SessionOpened(**fields, reason=f"{command.user} logged in")
    return Result([opened, *_sessions_to_forget(state, command.user_id, call.at)])


def _sessions_to_forget(state: People, user_id: int, now: float) -> list[SessionsForgotten]:
    keys = list(islice(state.sessions_of.scan(user_id), FORGOTTEN_AT_ONCE))
    ended = [id for _, until, id in keys if until <= now]
    room = MAX_SESSIONS - state.sessions_of.count(user_id) + len(ended)
    if room <= 0:
        ended += [id for _, until, id in keys if until > now][: 1 - room]
    if not ended:
        return []
    # Their tokens are still signed. The floor keeps one of them from counting as a session that is too new to
    # be known (decision 34).
    floor = max(state.open_sessions[id].opened_at for id in ended)
    why = "they have ended" if room > 0 else f"they have ended, or there are {MAX_SESSIONS} others"
    return [SessionsForgotten(user_id, tuple(ended), floor, why)]


def renew_session(state: People, command: RenewSession, call: Call) -> Result:
    """Extend an active session. One that has ended stays ended."""
    session = state.open_sessions.get(command.session_id)
    if session is None or session.closed_at is not None or not call.at < session.until < command.until:
        return Result()
    return Result([SessionRenewed(command.session_id, command.until, "it is used")])


def close_session(state: People, command: CloseSession, call: Call) -> Result:
    """Close a session, whose token is then refused. Closing it twice has no effect."""
    session = state.open_sessions.get(command.session_id)
    if command.session_id in state.sessions or (session is not None and session.closed_at is not None):
        return Result()
    reason = f"revoked by {command.user}" if command.revoked else f"{command.user} logged out"
    return Result([SessionClosed(command.session_id, command.user, reason)])


def create_token(state: People, command: CreateToken, call: Call) -> Result:
    """Create an API token. The command carries only a digest of the secret."""
    users.by_id(state, command.user_id)
    name = command.name
    check_name("an API token", name, MAX_NAME_CHARACTERS)
    if not 0 < command.lives_s <= MAX_DAYS * 86400:
        raise invalid(f"the lifespan of an API token must be more than 0 and at most {MAX_DAYS} days")
    tokens = [state.tokens[id] for _, _, id in state.tokens_of.scan(command.user_id)]
    expired = [token for token in tokens if token.until <= call.at]
    alive = [token for token in tokens if token.until > call.at]
    if any(token.name == name for token in alive):
        raise Refused(Problem("already_exists", f"there is an API token '{name}' already; revoke it first"))
    if len(alive) >= MAX_TOKENS:
        raise failed_precondition(f"there are {MAX_TOKENS} API tokens; revoke some")
    fields = {field: getattr(command, field) for field in ("token_id", "user_id", "name", "scope", "digest")}
    until, reason = call.at + command.lives_s, f"made by {command.user}"
    created = AccessToken(**fields, at=call.at, until=until, reason=reason)
    return Result(
        [*(TokenRevoked(token.token_id, "it has expired") for token in expired), created], command.token_id
    )


def revoke_token(state: People, command: RevokeToken, call: Call) -> Result:
    """Revoke an API token."""
    if command.token_id not in state.tokens:
        raise not_found("API token", command.token_id)
    return Result([TokenRevoked(command.token_id, f"revoked by {command.user}")])

"""Whether a session is open, according to the folded state. A token only proves who logged in, and when."""

from __future__ import annotations

from det_contracts.events.gateway import AccessToken
from services.kit.authz.access_check import forbidden
from services.people import tokens, users
from services.people.domain.state import OpenSession, People, User
from services.people.tokens import BadToken, Session


def check(state: People, session: Session, now: float) -> None:
    """Raise `BadToken` if the session has ended, or `Refused` (403) if its user is inactive."""
    user = users.by_any_name(state, session.user)
    session_record = state.open_sessions.get(session.id)
    until = session_record.until if session_record is not None else session.until
    if until <= now:
        raise BadToken("the token is too old")
    # A new password ends all sessions from before, since it may have been changed because somebody else knew
    # the old one.
    if (
        user is None
        or session.started_at < user.password_at
        or _is_closed(state, session, user, session_record)
    ):
        raise BadToken("this session is closed")
    if not user.active:
        raise forbidden("user is not active")


def _is_closed(state: People, session: Session, user: User, session_record: OpenSession | None) -> bool:
    if session_record is not None:
        return session_record.closed_at is not None
    # An unknown session may be too new for this replica to have folded it, so it is accepted unless it began
    # before the floor, below which sessions have been forgotten.
    floor = state.session_floors.get(user.id)
    return session.id in state.sessions or (floor is not None and session.started_at <= floor.at)


def is_renewal_due(state: People, session: Session, now: float) -> bool:
    """Whether an active session should be extended, which happens once in the second half of its lifetime."""
    session_record = state.open_sessions.get(session.id)
    if session_record is None or session_record.closed_at is not None:
        return False
    return now < session_record.until < renewed_until(session_record.opened_at, now) - tokens.VALID_S / 2


def renewed_until(opened_at: float, now: float) -> float:
    """The end of a session that is used now."""
    return min(now + tokens.VALID_S, opened_at + tokens.MAX_SESSION_S)


def open_sessions_of(state: People, user_id: int) -> list[tuple[str, OpenSession]]:
    """The user's sessions that were not closed. They may have expired, which the caller must check."""
    sessions = [(id, state.open_sessions[id]) for _, _, id in state.sessions_of.scan(user_id)]
    return [(id, session) for id, session in sessions if session.closed_at is None]


def tokens_of(state: People, user_id: int) -> list[AccessToken]:
    """The API tokens of a user, oldest first."""
    return [state.tokens[id] for _, _, id in state.tokens_of.scan(user_id)]


def by_api_token(state: People, text: str, now: float) -> Session:
    """The session that an API token stands for. Raises `BadToken`."""
    id = state.token_digests.get(tokens.digest_of(text))
    token = state.tokens.get(id) if id is not None else None
    if id is None or token is None:
        raise BadToken("this API token is not known, or was revoked")
    user = users.by_id(state, token.user_id)
    if not user.active:
        raise forbidden("user is not active")
    if token.until <= now:
        raise BadToken(f"the API token '{token.name}' has expired")
    return Session(id, user.username, token.until, api_token=id, scope=token.scope)


def rate_limit_key(session: tokens.Session) -> str:
    """The client whose rate limit a request counts against.

    A runaway script does not slow its owner's web UI.
    """
    return session.allocation or session.api_token or session.user

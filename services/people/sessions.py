"""Whether a session is open, by what is folded: the token alone says only who logged in, and when."""

from __future__ import annotations

from det_contracts.events.gateway import AccessToken
from services.kit.authz.judge import forbidden
from services.people import tokens, users
from services.people.domain.state import OpenSession, People, User
from services.people.tokens import BadToken, Session


def check(state: People, session: Session, now: float) -> None:
    """Raise `BadToken` for a session that is over; `Refused` (403) where its user is not active."""
    user = users.named(state, session.user)
    known = state.open_sessions.get(session.id)
    until = known.until if known is not None else session.until
    if until <= now:
        raise BadToken("the token is too old")
    if user is None or session.began_at < user.password_at or _is_closed(state, session, user, known):
        raise BadToken("this session is closed")
    if not user.active:
        raise forbidden("user is not active")


def _is_closed(state: People, session: Session, user: User, known: OpenSession | None) -> bool:
    if known is not None:
        return known.closed_at is not None
    # A replica may not have folded yet that it was opened; what it has forgotten was opened long before.
    floor = state.session_floors.get(user.id)
    return session.id in state.sessions or (floor is not None and session.began_at <= floor.at)


def is_due(state: People, session: Session, now: float) -> bool:
    """Whether a session that is used should be prolonged: once in the second half of its time."""
    known = state.open_sessions.get(session.id)
    if known is None or known.closed_at is not None:
        return False
    return now < known.until < prolonged(known.opened_at, now) - tokens.VALID_S / 2


def prolonged(opened_at: float, now: float) -> float:
    """Until when a session lives that is used now."""
    return min(now + tokens.VALID_S, opened_at + tokens.LONGEST_S)


def of_user(state: People, user_id: int) -> list[tuple[str, OpenSession]]:
    """The sessions of a user that were not closed; the caller leaves out those that are over."""
    found = [(id, state.open_sessions[id]) for _, _, id in state.sessions_of.scan(user_id)]
    return [(id, one) for id, one in found if one.closed_at is None]


def tokens_of(state: People, user_id: int) -> list[AccessToken]:
    """The API tokens of a user, oldest first."""
    return [state.tokens[id] for _, _, id in state.tokens_of.scan(user_id)]


def by_api_token(state: People, text: str, now: float) -> Session:
    """The session that an API token stands for; raises `BadToken`."""
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


def client_of(session: tokens.Session) -> str:
    """Whose share a request uses up: a program that runs wild leaves its owner's web UI alone."""
    return session.allocation or session.api_token or session.user

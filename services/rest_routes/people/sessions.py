"""Login sessions and API tokens: listing, creation and revocation (REST spec, section 2)."""

from __future__ import annotations

import secrets
import time

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.commands import CloseSession, CreateToken, RevokeToken
from det_contracts.problems import invalid, not_found
from services.catalogue.rights import authorize, is_authorized
from services.kit.authz.access_check import AccessRequest
from services.people import sessions, tokens, users
from services.people.domain import User
from services.rest_requests.bodies_of_people import TokenBody
from services.rest_requests.visit import Authenticated, UserVisit
from services.rest_routes.present.user import access_token, session
from services.web.query import FromQuery, Integer, QueryModel

router = APIRouter()


class TokensQuery(QueryModel):
    """GET /tokens"""

    user_id: Integer = 0
    username: str = ""


@router.get("/users/{user_id}/sessions")
async def list_sessions(visit: Authenticated, user_id: int) -> Response:
    """A user's sessions, newest first. Those of other users are for administrators."""
    _check_owner(visit, user_id)
    state, now = visit.catalogue.state, time.time()
    found = [(id, one) for id, one in sessions.open_sessions_of(state, user_id) if one.until > now]
    found.sort(key=lambda pair: -pair[1].opened_at)
    shown = [session(id, one, is_current=id == visit.session_id) for id, one in found]
    return visit.answer({"sessions": shown})


@router.delete("/users/{user_id}/sessions")
async def revoke_others(visit: Authenticated, user_id: int) -> Response:
    """Close all sessions of a user except the current one."""
    _check_owner(visit, user_id)
    found = [
        id for id, _ in sessions.open_sessions_of(visit.catalogue.state, user_id) if id != visit.session_id
    ]
    for id in found:
        await _close(visit, id)
    return visit.answer({"revoked": len(found)})


@router.delete("/users/{user_id}/sessions/{session_id}")
async def revoke_session(visit: Authenticated, user_id: int, session_id: str) -> Response:
    """Close one session. Its token is refused from now on."""
    _check_owner(visit, user_id)
    known = visit.catalogue.state.open_sessions.get(session_id)
    if known is None or known.user_id != user_id:
        raise not_found("session", session_id)
    await _close(visit, session_id)
    return visit.answer({})


async def _close(visit: UserVisit, id: str) -> None:
    await visit.peers.command(CloseSession(session_id=id, user=visit.user.username, revoked=True))


@router.get("/tokens")
async def list_tokens(visit: Authenticated, query: FromQuery[TokensQuery]) -> Response:
    """The user's API tokens or, for administrators, those of another user (`userId`, `username`)."""
    owner = _token_owner(visit, query.user_id, query.username)
    now = time.time()
    found = [one for one in sessions.tokens_of(visit.catalogue.state, owner.id) if one.until > now]
    return visit.answer({"tokenInfo": [access_token(one) for one in found]})


@router.post("/tokens")
async def create_token(visit: Authenticated, body: TokenBody) -> Response:
    """Create an API token for oneself. The token is shown only in this answer."""
    owner = visit.require_login()
    if body.user_id not in (0, owner.id):
        raise invalid("an API token is made by its owner")
    token, id = tokens.new_api_token(), secrets.token_hex(8)
    await visit.peers.command(
        CreateToken(
            token_id=id,
            user_id=owner.id,
            name=body.name or body.description,
            scope=body.scope,
            digest=tokens.digest_of(token),
            lives_s=body.days() * 86400,
            user=owner.username,
        )
    )
    made = visit.catalogue.state.tokens.get(id)
    return visit.answer({"token": token, "tokenInfo": access_token(made) if made is not None else None})


@router.delete("/tokens/{token_id}")
async def revoke_token(visit: Authenticated, token_id: str) -> Response:
    """Revoke an API token: one's own, or any as an administrator."""
    known = visit.catalogue.state.tokens.get(token_id)
    visit.require_login()
    if known is None or not is_authorized(
        visit.catalogue.state, visit.session(), AccessRequest("own_account", "token", token_id)
    ):
        raise not_found("API token", token_id)
    await visit.peers.command(RevokeToken(token_id=token_id, user=visit.user.username))
    return visit.answer({})


def _check_owner(visit: UserVisit, user_id: int) -> User:
    """The user whose sessions are meant. Raises `Refused` (403) if the caller has no access to them."""
    found = users.by_id(visit.catalogue.state, user_id)
    visit.require_login()
    authorize(visit.catalogue.state, visit.session(), AccessRequest("own_account", "user", user_id))
    return found


def _token_owner(visit: UserVisit, user_id: int, username: str) -> User:
    if username:
        user_id = users.by_name(visit.catalogue.state, username).id
    return _check_owner(visit, user_id or visit.user.id)

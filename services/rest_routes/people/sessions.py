"""Login sessions and API tokens: listing, creation and revocation (REST spec, section 2)."""

from __future__ import annotations

import secrets
import time

from starlette.responses import Response

from det_contracts.commands import CloseSession, CreateToken, RevokeToken
from det_contracts.problems import invalid, not_found
from services.catalogue.rights import authorize, is_authorized
from services.kit.authz.access_check import AccessRequest
from services.people import sessions, tokens, users
from services.people.domain import User
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies_of_people import TokenBody
from services.rest_routes.present.user import access_token, session
from services.web.query import FromQuery, Integer, QueryModel
from services.web.routes import Routes

router = Routes()


class TokensQuery(QueryModel):
    """GET /tokens"""

    user_id: Integer = 0
    username: str = ""


@router.get("/users/{user_id}/sessions", ("own_account", "user"))
async def list_sessions(call: Authenticated, user_id: int) -> Response:
    """A user's sessions, newest first. Those of other users are for administrators."""
    _check_owner(call, user_id)
    state, now = call.catalogue.state, time.time()
    open_sessions = [
        (id, open_session)
        for id, open_session in sessions.open_sessions_of(state, user_id)
        if open_session.until > now
    ]
    open_sessions.sort(key=lambda pair: -pair[1].opened_at)
    shown = [
        session(id, open_session, is_current=id == call.session_id) for id, open_session in open_sessions
    ]
    return call.answer({"sessions": shown})


@router.delete("/users/{user_id}/sessions", ("own_account", "user"))
async def revoke_others(call: Authenticated, user_id: int) -> Response:
    """Close all sessions of a user except the current one."""
    _check_owner(call, user_id)
    session_ids = [
        id for id, _ in sessions.open_sessions_of(call.catalogue.state, user_id) if id != call.session_id
    ]
    for id in session_ids:
        await _close(call, id)
    return call.answer({"revoked": len(session_ids)})


@router.delete("/users/{user_id}/sessions/{session_id}", ("own_account", "user"))
async def revoke_session(call: Authenticated, user_id: int, session_id: str) -> Response:
    """Close one session. Its token is refused from now on."""
    _check_owner(call, user_id)
    open_session = call.catalogue.state.open_sessions.get(session_id)
    if open_session is None or open_session.user_id != user_id:
        raise not_found("session", session_id)
    await _close(call, session_id)
    return call.answer({})


async def _close(call: UserCall, id: str) -> None:
    await call.peers.command(CloseSession(session_id=id, user=call.user.username, revoked=True))


@router.get("/tokens", ("own_account", "cluster"))
async def list_tokens(call: Authenticated, query: FromQuery[TokensQuery]) -> Response:
    """The user's API tokens or, for administrators, those of another user (`userId`, `username`)."""
    owner = _token_owner(call, query.user_id, query.username)
    now = time.time()
    api_tokens = [
        api_token for api_token in sessions.tokens_of(call.catalogue.state, owner.id) if api_token.until > now
    ]
    return call.answer({"tokenInfo": [access_token(api_token) for api_token in api_tokens]})


@router.post("/tokens", ("own_account", "cluster"))
async def create_token(call: Authenticated, body: TokenBody) -> Response:
    """Create an API token for oneself. The token is shown only in this answer."""
    owner = call.require_login()
    if body.user_id not in (0, owner.id):
        raise invalid("an API token is made by its owner")
    token, id = tokens.new_api_token(), secrets.token_hex(8)
    await call.peers.command(
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
    made = call.catalogue.state.tokens.get(id)
    return call.answer({"token": token, "tokenInfo": access_token(made) if made is not None else None})


@router.delete("/tokens/{token_id}", ("own_account", "cluster"))
async def revoke_token(call: Authenticated, token_id: str) -> Response:
    """Revoke an API token: one's own, or any as an administrator."""
    api_token = call.catalogue.state.tokens.get(token_id)
    call.require_login()
    if api_token is None or not is_authorized(
        call.catalogue.state, call.session(), AccessRequest("own_account", "token", token_id)
    ):
        # Not 403, which would say that a token of this id exists.
        raise not_found("API token", token_id)
    await call.peers.command(RevokeToken(token_id=token_id, user=call.user.username))
    return call.answer({})


def _check_owner(call: UserCall, user_id: int) -> User:
    """The user whose sessions are meant. Raises `Refused` (403) if the caller has no access to them."""
    owner = users.by_id(call.catalogue.state, user_id)
    call.require_login()
    authorize(call.catalogue.state, call.session(), AccessRequest("own_account", "user", user_id))
    return owner


def _token_owner(call: UserCall, user_id: int, username: str) -> User:
    if username:
        user_id = users.by_name(call.catalogue.state, username).id
    return _check_owner(call, user_id or call.user.id)

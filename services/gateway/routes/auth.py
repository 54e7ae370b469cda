"""Logging in and out (REST spec, section 2)."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.commands import CloseSession
from services.gateway import signing_in, tokens
from services.gateway.present.user import user
from services.gateway.web.bodies import Login
from services.gateway.web.visit import COOKIE, Anybody, Asked
from services.kit import passwords

router = APIRouter()


@router.post("/auth/login")
async def log_in(visit: Anybody, body: Login) -> Response:
    """A token for a new session, in the answer and as a cookie."""
    sent = body.password if body.is_hashed else passwords.hashed(body.password)
    who = await signing_in.with_password(visit.backend, body.username, sent, visit.address)
    token = tokens.issue(visit.backend.token_key, who.username, time.time())
    answer = visit.answer({"token": token, "user": user(who)})
    answer.set_cookie(
        COOKIE,
        token,
        max_age=int(tokens.VALID_S),
        httponly=True,
        samesite="strict",
        secure=visit.backend.proxies.is_encrypted(visit.request),
    )
    return answer


@router.get("/auth/user")
@router.get("/me")
async def who_am_i(visit: Asked) -> Response:
    """The user whose token was sent."""
    return visit.answer({"user": user(visit.user)})


@router.post("/auth/logout")
async def log_out(visit: Asked) -> Response:
    """Close the session: its token is refused from now on, by every replica. A task's ends by itself."""
    if visit.session().allocation:
        return visit.answer({})
    await visit.peers.command(CloseSession(session_id=visit.session_id, user=visit.user.username))
    answer = visit.answer({})
    answer.delete_cookie(COOKIE)
    return answer

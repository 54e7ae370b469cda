"""Login and logout (REST spec, section 2)."""

from __future__ import annotations

from starlette.responses import Response

from det_contracts.commands import CloseSession
from services.catalogue.rights import Directory
from services.kit import passwords
from services.kit.authz.access_check import access_of
from services.rest_requests import sign_in
from services.rest_requests.api_call import COOKIE, Anybody, Authenticated
from services.rest_requests.bodies_of_people import Login
from services.rest_routes.present.answers import Me, response_schema
from services.rest_routes.present.user import access, user
from services.web.routes import Routes

router = Routes()


@router.post("/auth/login", ("anybody", "cluster"))
async def log_in(call: Anybody, body: Login) -> Response:
    """Log in: the token of a new session, in the answer and as a cookie."""
    sent = body.password if body.is_hashed else passwords.client_hash(body.password)
    who = await sign_in.authenticate(call.backend, body.username, sent, call.address)
    client = call.request.headers.get("user-agent", "")
    token = await sign_in.open_session(call.backend, who, call.address, client)
    answer = call.answer({"token": token, "user": user(who)})
    call.set_token_cookie(answer, token)
    return answer


@router.get("/auth/user", ("logged_in", "cluster"))
@router.get("/me", ("logged_in", "cluster"), **response_schema(Me))
async def who_am_i(call: Authenticated) -> Response:
    """The user who owns the token, and what this user may do (our addition)."""
    allowed = access_of(Directory(call.catalogue.state), call.session().user)
    return call.answer({"user": user(call.user), "access": access(allowed)})


@router.post("/auth/logout", ("logged_in", "cluster"))
async def log_out(call: Authenticated) -> Response:
    """Close the session. From then on, every replica refuses its token.

    A task's session ends by itself, and an API token is revoked by its owner.
    """
    if not call.session().is_personal:
        return call.answer({})
    await call.peers.command(CloseSession(session_id=call.session_id, user=call.user.username))
    answer = call.answer({})
    answer.delete_cookie(COOKIE)
    return answer

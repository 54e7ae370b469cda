"""Browser sign-in with an OpenID Connect provider (docs/decisions/0040).

The browser goes to the provider and returns with a code, which is exchanged for signed claims. A command on
the user's machine listens on a local port, where it receives a ticket that only it can redeem.
"""

from __future__ import annotations

import html
import re
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from pydantic import Field
from starlette.responses import HTMLResponse, RedirectResponse, Response

from det_contracts.commands import SignIn
from det_contracts.problems import Problem, Refused, invalid, not_found
from services.kit.admission import Busy
from services.people import users
from services.people.domain import User
from services.people.oidc import pending as pending_sign_ins
from services.people.oidc.identity import identity
from services.people.oidc.pending import PendingSignIn, Ticket, Unusable
from services.people.oidc.provider_http import NotAuthenticated, ProviderUnavailable
from services.rest_requests import sign_in
from services.rest_requests.api_call import Anybody, ApiCall
from services.rest_requests.bodies_of_people import TicketBody
from services.rest_routes.present.answers import media_schema
from services.rest_routes.present.user import user
from services.web.errors import API_ERRORS, retry_after, unauthenticated
from services.web.query import FromQuery, QueryModel
from services.web.routes import Routes

if TYPE_CHECKING:
    from services.people.oidc.provider import Provider

router = Routes()


class StartQuery(QueryModel):
    """GET /auth/oidc/start. Values are checked in the route, which reports errors as a page."""

    port: str = ""
    challenge: str = ""
    back: str = Field("", alias="return")


class CallbackQuery(QueryModel):
    """GET /auth/oidc/callback, as sent by the provider."""

    code: str = ""
    state: str = ""
    iss: str = ""
    error: str = ""


BASE_PATH = "/api/v1/auth/oidc"
START = f"{BASE_PATH}/start"
COOKIE = "signing_in"
TICKET_LIFETIME_S = 60.0
MAX_CODE_LENGTH = 4096
_PORT = re.compile("[0-9]{1,5}")
_CHALLENGE = re.compile("[0-9a-f]{64}")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@router.get("/auth/oidc/start", ("anybody", "cluster"), **media_schema("text/html"))
async def start(call: Anybody, query: FromQuery[StartQuery]) -> Response:
    """Redirect to the provider. `return` is where to come back to; `port` and `challenge` are for `det`."""
    try:
        provider = _provider(call)
        port, challenge = int(query.port) if _PORT.fullmatch(query.port) else 0, query.challenge
        # A lower port might be a service of the machine itself, to which the ticket would be sent.
        if (query.port or challenge) and not (1024 <= port < 65536 and _CHALLENGE.fullmatch(challenge)):
            raise invalid("port must be 1024 to 65535, and challenge the SHA-256 of what the command knows")
        redirect_url = call.backend.settings.oidc_redirect_url or _callback_url(call)
        pending = pending_sign_ins.start_sign_in(redirect_url, query.back, time.time(), port, challenge)
        lane = call.backend.limits.sign_ins
        url = await lane.run(call.address, provider.sign_in_url, pending)
    except (Refused, ProviderUnavailable) as error:
        return _page(error)
    answer = RedirectResponse(url, 303, headers=HEADERS)
    answer.set_cookie(
        COOKIE,
        pending_sign_ins.seal(call.backend.token_key, pending),
        max_age=int(pending_sign_ins.WITHIN_S),
        path=BASE_PATH,
        httponly=True,
        # Not strict: the browser returns from the provider's site, and must send the cookie then.
        samesite="lax",
        secure=call.backend.proxies.is_encrypted(call.request),
    )
    return answer


@router.get("/auth/oidc/callback", ("anybody", "cluster"), **media_schema("text/html"))
async def callback(call: Anybody, query: FromQuery[CallbackQuery]) -> Response:
    """Complete a sign-in when the browser returns from the provider."""
    try:
        # Counted before it is known to fail, so that many attempts at once do not all pass.
        attempt = call.backend.logins.start_external_attempt(call.address, time.monotonic())
        try:
            answer = await _complete_sign_in(call, query)
        except Busy:
            attempt.undo(time.monotonic())
            raise
        except (Refused, ProviderUnavailable, NotAuthenticated):
            attempt.failed()
            raise
        attempt.undo(time.monotonic())
    except (Refused, ProviderUnavailable, NotAuthenticated) as error:
        answer = _page(error)
    # Also after a failure: a code and its pending sign-in are good for one attempt.
    answer.delete_cookie(COOKIE, path=BASE_PATH)
    return answer


@router.post("/auth/oidc/token", ("anybody", "cluster"))
async def token(call: Anybody, body: TicketBody) -> Response:
    """Exchange a ticket for the session's token. For the command that started the sign-in."""
    key = call.backend.token_key
    try:
        ticket = pending_sign_ins.open_ticket(key, body.ticket, body.verifier, time.time())
    except Unusable:
        raise unauthenticated("this ticket has expired or is not yours: run the command again") from None
    who = users.by_name(call.catalogue.state, call.session_of(ticket.token).user)
    return call.answer({"token": ticket.token, "user": user(who)})


async def _complete_sign_in(call: ApiCall, query: CallbackQuery) -> Response:
    provider, backend = _provider(call), call.backend
    pending, code = _pending_sign_in(call, query.state), query.code
    # A provider that does not send it (RFC 9207) is checked by the signature alone.
    if query.iss:
        _check_issuer(query.iss, backend.settings.oidc_issuer)
    if not code or len(code) > MAX_CODE_LENGTH:
        raise NotAuthenticated(
            "you did not sign in at the provider" if query.error else "the provider sent no code"
        )
    claims = await backend.limits.sign_ins.run(call.address, provider.claims, pending, code, time.time())
    who = await _sign_in_user(call, claims)
    client = call.request.headers.get("user-agent", "")
    id = pending_sign_ins.session_id(backend.token_key, pending)
    token = await sign_in.open_session(backend, who, call.address, client, id)
    return _redirect_back(call, pending, token)


async def _sign_in_user(call: ApiCall, claims: dict[str, object]) -> User:
    backend = call.backend
    user_identity = identity(backend.settings, claims)
    command = SignIn(
        issuer=user_identity.issuer,
        subject=user_identity.subject,
        username=user_identity.username,
        display_name=user_identity.display_name,
        groups=user_identity.groups,
        admin=user_identity.admin,
        provision=backend.settings.oidc_provision,
        managed=user_identity.managed,
        member_of=user_identity.member_of,
    )
    return users.by_id(call.catalogue.state, await call.peers.command(command))


def _redirect_back(call: ApiCall, pending: PendingSignIn, token: str) -> Response:
    if not pending.port:
        answer = RedirectResponse(pending.return_to, 303, headers=HEADERS)
        call.set_token_cookie(answer, token)
        return answer
    ticket = Ticket(token=token, challenge=pending.challenge, until=time.time() + TICKET_LIFETIME_S)
    sealed = pending_sign_ins.seal(call.backend.token_key, ticket)
    local_url = f"http://127.0.0.1:{pending.port}/?{urlencode({'ticket': sealed})}"
    return RedirectResponse(local_url, 303, headers=HEADERS)


def _pending_sign_in(call: ApiCall, state: str) -> PendingSignIn:
    """The sign-in that this browser started. Raises `NotAuthenticated`."""
    again = "begin again, and stay in the same browser"
    try:
        pending = pending_sign_ins.open_pending(
            call.backend.token_key, call.request.cookies.get(COOKIE, ""), time.time()
        )
    except Unusable:
        raise NotAuthenticated(
            f"this sign-in was started in another browser, or too long ago: {again}"
        ) from None
    # Otherwise another site could finish its own sign-in in this browser, and the user would work in a
    # stranger's account.
    if not state or state != pending.state:
        raise NotAuthenticated(f"this is not the last sign-in that this browser began: {again}")
    return pending


def _check_issuer(returned_from: str, issuer: str) -> None:
    if returned_from != issuer:
        raise NotAuthenticated("you returned from a different provider than you were sent to")


def _provider(call: ApiCall) -> Provider:
    provider = call.backend.provider
    if provider is None:
        raise not_found("provider to sign in with:", "STEADFAST_OIDC_ISSUER is not set")
    return provider


def _callback_url(call: ApiCall) -> str:
    scheme = "https" if call.backend.proxies.is_encrypted(call.request) else "http"
    return f"{scheme}://{call.request.headers.get('host', '')}{BASE_PATH}/callback"


def _page(error: Refused | ProviderUnavailable | NotAuthenticated) -> Response:
    """An error as a page, because people get here by following a link or from the provider."""
    problem = error.problem if isinstance(error, Refused) else Problem("unauthenticated", str(error))
    status = 502 if isinstance(error, ProviderUnavailable) else API_ERRORS[problem.code].status
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Not signed in</title>"
        "<meta name=viewport content='width=device-width'><style>:root{color-scheme:light dark}"
        "body{font:16px/1.5 system-ui;max-width:34rem;margin:4rem auto;padding:0 1rem}</style>"
        f"<h1>Not signed in</h1><p role=alert>{html.escape(problem.message)}.</p>"
        f"<p><a href='/det/login'>Back to the sign-in page</a></p></html>"
    )
    return HTMLResponse(text, status, HEADERS | retry_after(problem, status))

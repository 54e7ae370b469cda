"""One request: who sent it, what it asks, and how it is answered."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
import structlog
from fastapi import Depends, Request
from starlette.responses import Response

from det_contracts.creation import Creation, Once
from det_contracts.problems import Problem, Refused, invalid
from services.catalogue.catalogue import Catalogue
from services.catalogue.peers import Peers
from services.catalogue.rights import authorize, owner_of
from services.catalogue.visibility import Visibility
from services.kit import task_tokens
from services.kit.authz.access_check import AccessRequest
from services.kit.authz.permissions import Kind, Permission
from services.kit.idempotency import earlier_result
from services.people import sessions, tokens, users
from services.people.domain import User
from services.rest_requests.backend import Backend
from services.rest_requests.streaming import Stream, prefetch_first
from services.web import errors
from services.web.pacing import anonymous_client
from services.web.pacing_middleware import Client

E = TypeVar("E")
COOKIE = "auth"
PRETTY_OFF = ("0", "false")
"""Values of the query parameter `pretty` that turn it off."""
MAX_KEY_LENGTH = 255
FOR_READING = "this API token is for reading only; make one with the scope 'all'"
ALLOCATION_TOKEN_HEADER = "grpc-metadata-x-allocation-token"  # noqa: S105 - the name of a header
PART = 100
"""Entries of a list that are made at once: an experiment or a checkpoint has its whole configuration."""
log = structlog.get_logger()


class ApiCall:
    """A request that needs no user."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.backend: Backend = request.app.state.backend
        self.catalogue: Catalogue = self.backend.catalogue
        self.peers: Peers = self.backend.peers

    @property
    def address(self) -> str:
        """The client's address."""
        return self.backend.proxies.address_of(self.request)

    async def json(self) -> Any:
        """The request's body as untyped JSON. Raises `Refused` (400)."""
        try:
            return msgspec.json.decode(await self.request.body() or b"{}")
        except msgspec.DecodeError as error:
            raise invalid(f"the request is not valid JSON: {error}") from None

    def answer(self, content: Any) -> Response:
        """Build a JSON answer, indented if the query has `?pretty`."""
        body = msgspec.json.encode(content)
        if self.request.query_params.get("pretty", "0").lower() not in PRETTY_OFF:
            body = msgspec.json.format(body, indent=2)
        return Response(body, media_type="application/json")

    def token(self) -> str | None:
        """The request's token: a bearer token, the header of Determined's SDK in scripts, or the cookie."""
        # Headers before the cookie: a program that names a token must not act as whoever is logged in in the
        # browser.
        for header in ("authorization", ALLOCATION_TOKEN_HEADER):
            scheme, _, token = self.request.headers.get(header, "").partition(" ")
            if scheme.lower() == "bearer" and token:
                return token.strip()
        return self.request.cookies.get(COOKIE)

    def set_token_cookie(self, answer: Response, token: str) -> None:
        """Set the token as a cookie for the longest possible session; the server decides when it ends."""
        answer.set_cookie(
            COOKIE,
            token,
            max_age=int(tokens.MAX_SESSION_S),
            httponly=True,
            # Not sent along with requests that another site's page starts, so such a page cannot act for the
            # user.
            samesite="strict",
            secure=self.backend.proxies.is_encrypted(self.request),
        )

    def session(self) -> tokens.Session:
        """The session of this request. Raises `Refused` (401)."""
        token = self.token()
        if token is None:
            raise errors.unauthenticated("not logged in; run 'det user login'")
        return self.session_of(token)

    def session_of(self, token: str) -> tokens.Session:
        """The session that a token stands for. Raises `Refused` (401)."""
        if task_tokens.is_task_token(token):
            return self._task_session(token)
        state, now = self.catalogue.state, time.time()
        try:
            if token.startswith(tokens.API_PREFIX):
                return sessions.by_api_token(state, token, now)
            session = tokens.read(self.backend.token_key, token)
            sessions.check(state, session, now)
        except tokens.BadToken as error:
            raise errors.unauthenticated(f"{error}; run 'det user login'") from None
        if sessions.is_renewal_due(state, session, now):
            # In the background: the answer does not depend on it, and the token stays the same.
            self.backend.renewals.start(session.id, sessions.renewed_until(session.started_at, now))
        return session

    @property
    def client(self) -> Client:
        """Whose share of the gateway's time the request takes: an address's, if its token is not valid."""
        try:
            session = self.session()
        except Refused:
            # A wrong token must not use up somebody's share.
            name = anonymous_client(self.address)
            return Client(name, name)
        return Client(session.user, sessions.rate_limit_key(session))

    @property
    def visibility(self) -> Visibility:
        """The part of the catalogue that the caller may see."""
        return Visibility(self.catalogue.state, self.session())

    def _task_session(self, token: str) -> tokens.Session:
        """Return the session of a running task, which acts for the task's owner."""
        key = self.backend.task_key
        if key is None:
            raise errors.unauthenticated(
                "tasks cannot log in here: set STEADFAST_TASK_KEY at the gateway and at the scheduler"
            )
        try:
            claims = task_tokens.read(key, token)
        except task_tokens.BadTaskToken as error:
            raise errors.unauthenticated(str(error)) from None
        allocation = self.catalogue.state.allocations.get(claims.allocation)
        owner = owner_of(self.catalogue.state, allocation) if allocation is not None else None
        if allocation is None or allocation.ended_at is not None or owner is None:
            raise errors.unauthenticated(f"allocation {claims.allocation} is over, and its session with it")
        return tokens.Session(claims.allocation, owner.username, math.inf, allocation=claims.allocation)


class UserCall(ApiCall):
    """A request of a user. Creating one fails with 401 if the request has no user."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        # The session accepted by `services.rest_requests.authz`, if the request passed there.
        session: tokens.Session = getattr(request.state, "session", None) or self.session()
        self.session_id = session.id
        self._user_id = users.id_by_name(self.catalogue.state, session.user)
        self.digest = ""
        """Digest of the whole request, if its body was not kept in memory."""

    @property
    def user(self) -> User:
        """The user who sent the request."""
        return users.by_id(self.catalogue.state, self._user_id)

    def check_view(self, kind: Kind, *ids: object) -> None:
        """Raise `Refused` (404) unless the user may see these things, now and at every later recheck."""
        access_checks = [AccessRequest("view", kind, id) for id in ids]
        authorize(self.catalogue.state, self.session(), *access_checks)
        # Kept for `recheck`: an answer may be sent for hours, and roles may change meanwhile.
        self.request.state.access_checks += access_checks

    def check_permission(self, permission: Permission, kind: Kind, id: object) -> None:
        """Raise `Refused` unless the user has a right that is more than to view, before a body is stored."""
        session = self.session()
        if session.scope == "read":
            raise errors.forbidden(FOR_READING)
        authorize(self.catalogue.state, session, AccessRequest(permission, kind, id))

    def recheck(self) -> None:
        """Raise `Refused` if the user has lost the right to an answer that is still being sent."""
        authorize(self.catalogue.state, self.session(), *self.request.state.access_checks)

    async def create(self, command: Creation) -> Any:
        """Run a creating command once per `Idempotency-Key`, and return the answer's value.

        Raises `Refused`, also if the key was used before with another request.
        """
        once = await self.idempotency_key()
        # Asked here first, which saves a round. The owner compares once more, since two requests may come at
        # the same time.
        previous_result = earlier_result(self.catalogue.state.creations, once)
        if previous_result is not None:
            return previous_result.value
        return await self.peers.command(msgspec.structs.replace(command, once=once))

    async def idempotency_key(self) -> Once | None:
        """The request's `Idempotency-Key`; None if it has none. Raises `Refused` if it is malformed."""
        key = self.request.headers.get("idempotency-key", "")
        if not key:
            return None
        if len(key) > MAX_KEY_LENGTH or not key.isprintable():
            raise invalid(f"Idempotency-Key: at most {MAX_KEY_LENGTH} printable characters are expected")
        # With the user, so that nobody finds out what another one has made by trying keys.
        id = hashlib.sha256(f"{self.user.id}:{key}".encode()).hexdigest()[:32]
        return Once(id, key, self.digest or await self.request_digest())

    async def request_digest(self) -> str:
        """A digest of the request's method, path and body that nobody outside can compute."""
        # The digest is keyed with a secret: the request may hold a password, and the log must not help to
        # guess it.
        content = f"{self.request.method} {self.request.url.path}\n".encode() + await self.request.body()
        return (await asyncio.to_thread(hmac.digest, self.backend.token_key, content, "sha256")).hex()

    def require_login(self) -> User:
        """The user, if they logged in themselves. Raises `Refused` (403) for tasks and API tokens.

        A delegated credential must not create another credential, which would outlive it.
        """
        if not self.session().is_personal:
            raise errors.forbidden("passwords, sessions and API tokens need a login: run det user login")
        return self.user

    async def take_turn(self) -> None:
        """Wait until it is this user's turn to take a few milliseconds of the event loop."""
        await self.backend.limits.data_turns.take(self.user.username)

    def stream(
        self,
        pages: AsyncIterator[Sequence[Any] | bytes],
        *,
        passed_on: bool = False,
        release: Callable[[], Awaitable[object]] | None = None,
    ) -> Response:
        """Stream one JSON object per line. A failure after the start is sent as a line, too.

        A page is a list of objects, or bytes made by `encode_line`. For the rest, see `Stream`.
        """
        content = _encode_pages(pages)
        return Stream(content, call=self, passed_on=passed_on, release=release, media_type="application/json")

    async def answer_list(
        self,
        name: str,
        entries: Sequence[E],
        show: Callable[[Sequence[E]], Awaitable[list[Any]]],
        **more: Any,
    ) -> Response:
        """Build a JSON answer with a list and `more` fields. `show` returns entries as they are answered.

        Of a long list, each part is made once the client has taken the one before.
        """
        if len(entries) <= PART:
            return self.answer({name: await show(entries), **more})

        async def parts() -> AsyncIterator[list[Any]]:
            for start in range(0, len(entries), PART):
                yield await show(entries[start : start + PART])
                self.recheck()

        return await self.stream_list(name, parts(), **more)

    async def stream_list(self, name: str, parts: AsyncIterator[list[Any]], **more: Any) -> Response:
        """Stream a JSON answer with a list of any length and `more` fields."""
        # A failure of the first part still gets its status.
        content = _encode_list(name, await prefetch_first(parts), more)
        return Stream(content, call=self, media_type="application/json")


def encode_line(result: Any) -> bytes:
    """Encode one object of a stream."""
    return msgspec.json.encode({"result": result}) + b"\n"


async def _encode_list(
    name: str, parts: AsyncIterator[list[Any]], more: dict[str, Any]
) -> AsyncIterator[bytes]:
    try:
        yield msgspec.json.encode({**more, name: []}).removesuffix(b"]}")
        separator = b""
        async for part in parts:
            if part:
                yield separator + msgspec.json.encode(part)[1:-1]
                separator = b","
        yield b"]}"
    finally:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


async def _encode_pages(pages: AsyncIterator[Sequence[Any] | bytes]) -> AsyncIterator[bytes]:
    try:
        async for page in pages:
            if page:
                yield page if isinstance(page, bytes) else b"".join([encode_line(result) for result in page])
    except Refused as refusal:
        yield msgspec.json.encode(errors.line(refusal.problem)) + b"\n"
    except asyncio.CancelledError:
        raise
    except Exception as error:
        log.error("stream.failed", exc_info=error)
        problem = Problem("internal", f"the gateway failed in this stream: {error!r}")
        yield msgspec.json.encode(errors.line(problem)) + b"\n"
    finally:
        if isinstance(pages, AsyncGenerator):
            await pages.aclose()


async def _call(request: Request) -> ApiCall:
    return ApiCall(request)


async def _user_call(request: Request) -> UserCall:
    return UserCall(request)


Anybody = Annotated[ApiCall, Depends(_call)]
Authenticated = Annotated[UserCall, Depends(_user_call)]

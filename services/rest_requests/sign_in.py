"""Password checks at login: rate-limited, off the event loop, and rehashed to the current cost."""

from __future__ import annotations

import contextlib
import time

from det_contracts.commands import OpenSession, RenewPassword
from det_contracts.problems import Refused
from services.kit import passwords
from services.kit.admission import Busy
from services.people import tokens, users
from services.people.domain import User
from services.rest_requests.backend import Backend
from services.rest_requests.settings import is_remotely_reachable
from services.web.errors import forbidden, unauthenticated

MAX_CLIENT_LENGTH = 200
"""Maximum stored length of a client's self-description, in characters."""


async def authenticate(backend: Backend, username: str, sent: str, address: str) -> User:
    """Return the user if the password is correct.

    Raises `Refused`: 401 for a wrong name or password (without saying which), 403 for an inactive user, 429
    after too many attempts.
    """
    # Before the check, so that attempts which are made at once are counted, too.
    attempt = backend.logins.start_attempt(username, address, time.monotonic())
    try:
        user = await _check_password(backend, username, sent, address)
    except Busy:
        # Nothing was tried: a gateway under load must not lock people out.
        attempt.undo(time.monotonic())
        raise
    except Refused:
        attempt.failed()
        raise
    attempt.succeeded(time.monotonic())
    await _rehash_password(backend, user, sent, address)
    return user


async def open_session(backend: Backend, user: User, address: str, client: str, id: str = "") -> str:
    """Open a session for an authenticated user and return its token. `id` is as in `tokens.new_session`."""
    session = tokens.new_session(user.username, time.time(), id, user.password_at)
    await backend.peers.command(
        OpenSession(
            session_id=session.id,
            user_id=user.id,
            opened_at=session.at,
            until=session.until,
            address=address,
            client=client[:MAX_CLIENT_LENGTH],
            user=user.username,
        )
    )
    return tokens.issue(backend.token_key, session)


async def _check_password(backend: Backend, username: str, sent: str, address: str) -> User:
    state = backend.catalogue.state
    user = users.by_any_name(state, username)
    lane, password = backend.limits.passwords, user.password if user is not None else None
    # For an unknown name as well, which takes as long: the time must not tell which names exist.
    fits = await lane.run(address, passwords.matches, sent, password)
    # The user may have changed while the password was being checked.
    now = users.by_any_name(state, username)
    empty_ok = not is_remotely_reachable(backend.settings)
    if now is None or now.password != password or now.remote or now.username != username:
        fits = False
    if now is None or not fits or not (sent or empty_ok):
        hint = "" if empty_ok else "; logging in without a password is not allowed here"
        raise unauthenticated(f"wrong password, or no user '{username}'; run 'det user login'{hint}")
    if not now.active:
        raise forbidden("user is not active")
    return now


async def _rehash_password(backend: Backend, user: User, sent: str, address: str) -> None:
    """Rehash an outdated password at the current cost. If this fails, the next login tries again."""
    if not passwords.is_outdated(user.password):
        return
    with contextlib.suppress(Refused):
        renewed = await backend.limits.passwords.run(address, passwords.to_stored, sent)
        await backend.peers.command(RenewPassword(user_id=user.id, before=user.password, password=renewed))

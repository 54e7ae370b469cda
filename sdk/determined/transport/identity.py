"""The user of a session, and how they log in (client spec, section 1)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from urllib.parse import quote

from determined.common.api import errors
from determined.transport.rest import Session
from determined.transport.token_store import TokenStore

DEFAULT_USER = "determined"
# That of Determined 0.25, whose published clients log in with it.
_SALT = "GubPEmmotfiK9TMD6Zdw"

AskPassword = Callable[[str], str]


def hashed(password: str) -> str:
    """A password as it travels: hex of SHA-512, the empty one stays empty (REST spec, section 2).

    Raises TypeError for what is no text.
    """
    if not isinstance(password, str):
        raise TypeError(f"a password must be a str, not {type(password).__name__}")
    return hashlib.sha512((_SALT + password).encode()).hexdigest() if password else ""


def log_in(session: Session, user: str, password: str) -> str:
    """Return a new token for this user. Raises `UnauthenticatedException` if the password is wrong."""
    answer = session.post(
        "/api/v1/auth/login", {"username": user, "password": hashed(password), "isHashed": True}
    )
    return str(answer["token"])


def sign_in(
    session: Session,
    user: str | None = None,
    password: str | None = None,
    ask: AskPassword | None = None,
) -> None:
    """Set the session's token and user from the first applicable source.

    `DET_USER_TOKEN` without `DET_USER` is an API token, whose owner the master knows. Otherwise the user is
    the explicit one; `DET_USER` with `DET_PASS`; the active user of the token store; or the default user. The
    token is a stored one that the master still accepts, else `DET_USER_TOKEN`, else one from a login, for
    which `ask` is called with the user name and returns the password. In a task without any of these, the
    allocation token is used.
    """
    if user is None and _use_token_alone(session):
        return
    store = TokenStore(session.master)
    name, secret = _who(store, user, password)
    if _use_stored(session, store, name) or _use_variables(session, user, chosen=name is not None):
        return
    name = name or DEFAULT_USER
    token = _log_in_somehow(session, name, secret, ask)
    store.save(name, token)
    session.token, session.user = token, name


def current_user(session: Session) -> str:
    """Return the name of the session's user. Asks the master if only the token is known."""
    if session.user is None:
        session.user = str(session.get("/api/v1/me")["user"]["username"])
    return session.user


def _who(store: TokenStore, user: str | None, password: str | None) -> tuple[str | None, str | None]:
    if user is not None:
        return user, password
    by_environment = os.environ.get("DET_USER"), os.environ.get("DET_PASS")
    if None not in by_environment and by_environment[0]:
        return by_environment
    return store.active_user(), None


def _use_stored(session: Session, store: TokenStore, name: str | None) -> bool:
    name = name or DEFAULT_USER
    token = store.token(name)
    if token is None:
        return False
    if not _is_accepted(session, token):
        store.drop(name)
        return False
    session.user = name
    return True


def _is_accepted(session: Session, token: str) -> bool:
    """Use a token, unless the master rejects it."""
    session.token = token
    try:
        session.get("/api/v1/me")
    except errors.UnauthenticatedException:
        session.token = None
        return False
    return True


def _use_token_alone(session: Session) -> bool:
    """Use an API token given to a program. User names and the token store are then ignored."""
    token = os.environ.get("DET_USER_TOKEN")
    if not token or os.environ.get("DET_USER"):
        return False
    session.token, session.user = token, None
    return True


def _use_variables(session: Session, user: str | None, chosen: bool) -> bool:
    name, token = os.environ.get("DET_USER"), os.environ.get("DET_USER_TOKEN")
    if name and token and user in (None, name):
        session.token, session.user = token, name
        return True
    allocation = os.environ.get("DET_SESSION_TOKEN")
    return not chosen and bool(allocation) and _is_accepted(session, allocation or "")


def _log_in_somehow(session: Session, name: str, secret: str | None, ask: AskPassword | None) -> str:
    if secret is not None:
        return log_in(session, name, secret)
    # On a new cluster this user has no password, and asking for one would puzzle a newcomer.
    if name == DEFAULT_USER:
        try:
            return log_in(session, name, "")
        except errors.UnauthenticatedException:
            if ask is None:
                raise
    if ask is None:
        raise errors.UnauthenticatedException(f"user '{name}' has no stored token and gave no password")
    return log_in(session, name, ask(name))


def in_path(name: str) -> str:
    """A name as one part of a path.

    Raises ValueError for an empty one, which would ask for all there are, and TypeError for what is no text.
    """
    if not isinstance(name, str):
        raise TypeError(f"a name is expected, a str, not {type(name).__name__}: {name!r}")
    if not name:
        raise ValueError("a name or an id is expected, not an empty text")
    # Also `/`, which would otherwise end this part of the path.
    return quote(name, safe="")

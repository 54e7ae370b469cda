"""Credentials of clients: signed session tokens, and API tokens identified by a digest.

Any replica can read a session token and check it against its folded state. The log contains no tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

import msgspec

from det_contracts.events.gateway import TokenScope
from services.kit import base64url

VALID_S = 7 * 86400.0
"""Seconds after which an unused session ends."""
MAX_SESSION_S = 90 * 86400.0
"""Seconds after login at which a session ends in any case."""
API_PREFIX = "sft_"
"""Marks API tokens for people, and for programs that scan code for secrets."""
_SECRET_BYTES = 32


class Session(msgspec.Struct, frozen=True):
    """Who is calling, and with what kind of credential."""

    id: str
    user: str
    until: float
    """Seconds since the epoch, UTC. For a person's session, the end as planned at login."""
    allocation: str = ""
    """The run that the session belongs to and ends with; empty for a person's session."""
    at: float = 0.0
    """When the person logged in; 0 in tokens of earlier versions."""
    api_token: str = ""
    """Id of the API token that the session stands for; empty for a person's session."""
    scope: TokenScope = "all"

    @property
    def started_at(self) -> float:
        """When a person logged in."""
        return self.at or self.until - VALID_S

    @property
    def is_personal(self) -> bool:
        """Whether a person logged in for this session."""
        return not self.allocation and not self.api_token


class BadToken(Exception):
    """The token was not issued here, was tampered with, or has expired; the text says which."""


def new_session(user: str, now: float, id: str = "", password_at: float = 0.0) -> Session:
    """A new session for a user who has logged in. `id` is generated unless given.

    `password_at` is when their password was set, by the clock of the gateway that recorded it.
    """
    # A clock that is behind that one, or was set back, must not make it a session from before the password.
    return Session(id or secrets.token_hex(16), user, now + VALID_S, at=max(now, password_at))


def issue(key: bytes, session: Session) -> str:
    """The token of a session."""
    body = msgspec.json.encode(session)
    return f"{base64url.encode(body)}.{base64url.encode(_signature(key, body))}"


def read(key: bytes, token: str) -> Session:
    """The session of a token. Raises `BadToken`. The caller must check that the session is still open."""
    text, _, signature = token.partition(".")
    try:
        body, given_signature = base64url.decode(text), base64url.decode(signature)
        # In constant time, so that a signature cannot be guessed byte by byte. Nothing of the body is read
        # before.
        if not hmac.compare_digest(_signature(key, body), given_signature):
            raise BadToken("the token was not issued by this cluster")
        return msgspec.json.decode(body, type=Session)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadToken("the token cannot be read") from error


def new_api_token() -> str:
    """Generate an unguessable API token."""
    return API_PREFIX + base64url.encode(secrets.token_bytes(_SECRET_BYTES))


def digest_of(api_token: str) -> str:
    """The stored digest of an API token. A plain hash is enough, because the token is long and random."""
    return hashlib.sha256(api_token.encode("utf-8", "surrogatepass")).hexdigest()


def _signature(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, hashlib.sha256)

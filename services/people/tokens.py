"""What clients show to be known by: session tokens, which are signed, and API tokens, known by a digest.

Any replica can read a session token and judge it by what it has folded. Whoever reads the log learns none.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

import msgspec

from det_contracts.events.gateway import TokenScope
from services.kit import base64url

VALID_S = 7 * 86400.0
"""A session ends when it was not used for so long."""
LONGEST_S = 90 * 86400.0
"""And at the latest so long after its login."""
API_PREFIX = "sft_"
"""By which people, and programs that look for secrets in code, know an API token."""
_SECRET_BYTES = 32


class Session(msgspec.Struct, frozen=True):
    """Who asks, and by what right."""

    id: str
    user: str
    until: float
    """Seconds since the epoch, UTC; of a person's session, as it was at login."""
    allocation: str = ""
    """The run that the session belongs to, and dies with; empty for a person's."""
    at: float = 0.0
    """When a person logged in; 0 in tokens of versions before."""
    api_token: str = ""
    """The id of the API token that stands for the session; empty for a person's."""
    scope: TokenScope = "all"

    @property
    def began_at(self) -> float:
        """When a person logged in."""
        return self.at or self.until - VALID_S

    @property
    def is_persons(self) -> bool:
        """Whether somebody logged in for it."""
        return not self.allocation and not self.api_token


class BadToken(Exception):
    """A token is not ours, was tampered with, or is too old; the text says which."""


def begin(user: str, now: float, id: str = "") -> Session:
    """A new session of a user who has logged in; with an id of its own unless one is given."""
    return Session(id or secrets.token_hex(16), user, now + VALID_S, at=now)


def issue(key: bytes, session: Session) -> str:
    """The token of a session."""
    body = msgspec.json.encode(session)
    return f"{base64url.encode(body)}.{base64url.encode(_signature(key, body))}"


def read(key: bytes, token: str) -> Session:
    """The session of a token; raises `BadToken`. Whether it is still open is for the caller to see."""
    text, _, signature = token.partition(".")
    try:
        body, given = base64url.decode(text), base64url.decode(signature)
        if not hmac.compare_digest(_signature(key, body), given):
            raise BadToken("the token was not issued by this cluster")
        return msgspec.json.decode(body, type=Session)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadToken("the token cannot be read") from error


def new_api_token() -> str:
    """A token that nobody can guess."""
    return API_PREFIX + base64url.encode(secrets.token_bytes(_SECRET_BYTES))


def digest_of(api_token: str) -> str:
    """What is kept of an API token. It is long and random, so that one plain digest is enough."""
    return hashlib.sha256(api_token.encode("utf-8", "surrogatepass")).hexdigest()


def _signature(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, hashlib.sha256)

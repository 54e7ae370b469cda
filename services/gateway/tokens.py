"""Session tokens: signed, so that any replica can read them and none must remember them."""

from __future__ import annotations

import hashlib
import hmac
import secrets

import msgspec

from services.kit import base64url

VALID_S = 7 * 86400.0


class Session(msgspec.Struct, frozen=True):
    """What a token says."""

    id: str
    user: str
    until: float
    """Seconds since the epoch, UTC."""
    allocation: str = ""
    """The run that the session belongs to, and dies with; empty for a person's."""


class BadToken(Exception):
    """A token is not ours, was tampered with, or is too old; the text says which."""


def issue(key: bytes, user: str, now: float) -> str:
    """A token for a new session of a user."""
    body = msgspec.json.encode(Session(secrets.token_hex(16), user, now + VALID_S))
    return f"{base64url.encode(body)}.{base64url.encode(_signature(key, body))}"


def read(key: bytes, token: str, now: float) -> Session:
    """The session of a token; raises `BadToken`."""
    text, _, signature = token.partition(".")
    try:
        body, given = base64url.decode(text), base64url.decode(signature)
        if not hmac.compare_digest(_signature(key, body), given):
            raise BadToken("the token was not issued by this cluster")
        session = msgspec.json.decode(body, type=Session)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadToken("the token cannot be read") from error
    if session.until <= now:
        raise BadToken("the token is too old")
    return session


def _signature(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, hashlib.sha256)

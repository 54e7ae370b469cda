"""A sign-in that has begun: kept by the browser, sealed, so that any gateway can finish it."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Any
from urllib.parse import urlsplit

import msgspec
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from services.kit import base64url

WITHIN_S = 600.0
"""How long somebody may take at the provider."""
HOME = "/det/dashboard"
LONGEST_RETURN = 2000
_PATH = re.compile(r"/det(/[!-~]*)?")


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known again when somebody comes back from the provider."""

    state: str
    """Comes back with them: another site cannot finish a sign-in in their name."""
    nonce: str
    """Comes back in what the provider signs: it was signed for this sign-in."""
    verifier: str
    """Of PKCE: nobody else can do anything with the code."""
    at: float
    redirect_url: str
    return_to: str = HOME
    port: int = 0
    """Of the command that waits on the user's machine; 0 for the web UI."""
    challenge: str = ""
    """The command's: see `ticket`."""


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """What a command on the user's machine exchanges for the session's token."""

    token: str
    challenge: str
    """SHA-256 of what the command alone knows, for a ticket passes through a browser's address."""
    until: float


class Unusable(Exception):
    """Was not sealed here, or too long ago."""


def begin(redirect_url: str, return_to: str, now: float, port: int, challenge: str) -> Pending:
    """A new sign-in."""
    return Pending(
        state=secrets.token_urlsafe(32),
        nonce=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
        at=now,
        redirect_url=redirect_url,
        return_to=place(return_to),
        port=port,
        challenge=challenge,
    )


def place(text: str) -> str:
    """A place of the web UI, for whatever was asked for: nobody is sent elsewhere from here."""
    parts = urlsplit(text) if len(text) <= LONGEST_RETURN and _PATH.fullmatch(text) else None
    if parts is None or parts.scheme or parts.netloc or "\\" in text or ".." in parts.path:
        return HOME
    return text


def session_id(key: bytes, pending: Pending) -> str:
    """The session of a sign-in: the same if somebody comes back twice, so that one that ended stays so."""
    return hashlib.blake2b(
        pending.state.encode(), key=key[:64], person=b"sign-in-session", digest_size=16
    ).hexdigest()


def seal(key: bytes, kept: Pending | Ticket) -> str:
    """A text that nobody else can make or read."""
    return base64url.encode(bytes(_box(key, type(kept)).encrypt(msgspec.json.encode(kept))))


def open_pending(key: bytes, text: str, now: float) -> Pending:
    """Raises `Unusable`."""
    found: Pending = _open(key, text, Pending)
    if now - found.at > WITHIN_S:
        raise Unusable
    return found


def open_ticket(key: bytes, text: str, verifier: str, now: float) -> Ticket:
    """Raises `Unusable` also where whoever brings it did not ask for it."""
    found: Ticket = _open(key, text, Ticket)
    if found.until < now or not secrets.compare_digest(found.challenge, challenge_of(verifier)):
        raise Unusable
    return found


def challenge_of(verifier: str) -> str:
    """What a command sends ahead of what it knows."""
    return hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).hexdigest()


def _open(key: bytes, text: str, kind: type) -> Any:
    try:
        return msgspec.json.decode(_box(key, kind).decrypt(base64url.decode(text)), type=kind)
    except (CryptoError, ValueError, msgspec.MsgspecError) as error:
        raise Unusable from error


def _box(key: bytes, kind: type) -> SecretBox:
    # A key for each kind: none can be shown in place of another.
    own = hashlib.blake2b(kind.__name__.encode(), key=key[:64], person=b"signing-in", digest_size=32)
    return SecretBox(own.digest())

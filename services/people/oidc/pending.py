"""A sign-in in progress, sealed and kept in the browser so that any gateway can finish it."""

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
"""Maximum time a user may spend at the provider, in seconds."""
HOME_PAGE = "/det/dashboard"
MAX_RETURN_CHARACTERS = 2000
_PATH = re.compile(r"/det(/[!-~]*)?")


class PendingSignIn(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known again when the browser returns from the provider."""

    state: str
    """The provider returns it, which prevents another site from completing a sign-in in the user's name."""
    nonce: str
    """Returned inside the signed token, which shows that the token was issued for this sign-in."""
    verifier: str
    """The PKCE verifier, without which the code is useless."""
    at: float
    redirect_url: str
    return_to: str = HOME_PAGE
    port: int = 0
    """Port of the command that is waiting on the user's machine; 0 for the web UI."""
    challenge: str = ""
    """The command's challenge; see `Ticket`."""


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket that a command on the user's machine exchanges for the session's token."""

    token: str
    challenge: str
    """SHA-256 of the command's secret. Needed because the ticket passes through a browser's address bar."""
    until: float


class Unusable(Exception):
    """The text was not sealed here, or has expired."""


def start_sign_in(redirect_url: str, return_to: str, now: float, port: int, challenge: str) -> PendingSignIn:
    """Start a new sign-in."""
    return PendingSignIn(
        state=secrets.token_urlsafe(32),
        nonce=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
        at=now,
        redirect_url=redirect_url,
        return_to=safe_return_path(return_to),
        port=port,
        challenge=challenge,
    )


def safe_return_path(text: str) -> str:
    """The place in the web UI to return to, or the home page. Never an address outside the web UI."""
    parts = urlsplit(text) if len(text) <= MAX_RETURN_CHARACTERS and _PATH.fullmatch(text) else None
    # Browsers read a backslash as a slash, and dots could lead out of the web UI to a task's page.
    if parts is None or parts.scheme or parts.netloc or "\\" in text or ".." in parts.path:
        return HOME_PAGE
    return text


def session_id(key: bytes, pending: PendingSignIn) -> str:
    """The id of a sign-in's session.

    It is deterministic, so returning twice cannot reopen a closed session.
    """
    return hashlib.blake2b(
        pending.state.encode(), key=key[:64], person=b"sign-in-session", digest_size=16
    ).hexdigest()


def seal(key: bytes, value: PendingSignIn | Ticket) -> str:
    """Seal a value as text that only the gateways can create or read."""
    return base64url.encode(bytes(_box(key, type(value)).encrypt(msgspec.json.encode(value))))


def open_pending(key: bytes, text: str, now: float) -> PendingSignIn:
    """Open a sealed sign-in. Raises `Unusable`."""
    pending: PendingSignIn = _open(key, text, PendingSignIn)
    if now - pending.at > WITHIN_S:
        raise Unusable
    return pending


def open_ticket(key: bytes, text: str, verifier: str, now: float) -> Ticket:
    """Open a sealed ticket. Raises `Unusable`, also if the caller is not the one who requested it."""
    ticket: Ticket = _open(key, text, Ticket)
    if ticket.until < now or not secrets.compare_digest(ticket.challenge, challenge_of(verifier)):
        raise Unusable
    return ticket


def challenge_of(verifier: str) -> str:
    """The challenge that a command sends in advance for its secret verifier."""
    return hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).hexdigest()


def _open(key: bytes, text: str, kind: type) -> Any:
    try:
        return msgspec.json.decode(_box(key, kind).decrypt(base64url.decode(text)), type=kind)
    except (CryptoError, ValueError, msgspec.MsgspecError) as error:
        raise Unusable from error


def _box(key: bytes, kind: type) -> SecretBox:
    # Each kind has its own key, so that one cannot be presented as another.
    box_key = hashlib.blake2b(kind.__name__.encode(), key=key[:64], person=b"signing-in", digest_size=32)
    return SecretBox(box_key.digest())

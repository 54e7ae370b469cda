"""Passwords as clients send them and as they are stored: Argon2id, and scrypt from earlier versions.

All functions except `client_hash` and `is_outdated` are slow on purpose; do not call them on an event loop.
They release the interpreter lock while working, so a separate thread blocks nothing.
"""

from __future__ import annotations

import hashlib
import hmac

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from det_contracts.commands import Password

SALT = "GubPEmmotfiK9TMD6Zdw"
"""Salt of the hash that clients compute before sending a password. Part of the protocol, not a secret."""
MEMORY_KIB = 64 << 10
PASSES = 2
_ARGON2 = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=1)
_ARGON2_MARK = "$argon2id$"
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "maxmem": 2**26}
_DUMMY_HASH = (
    "$argon2id$v=19$m=65536,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)
"""Compared when there is no password, so that the answer takes equally long."""


def client_hash(password: str) -> str:
    """Return a password as clients send it: hex SHA-512; the empty password stays empty."""
    return hashlib.sha512(_bytes(SALT + password)).hexdigest() if password else ""


def to_stored(sent: str) -> Password:
    """Return what is stored for a password sent by a client."""
    return Password(hashed=_ARGON2.hash(_bytes(sent))) if sent else Password()


def from_setting(text: str) -> Password:
    """Return a password from a setting, given in plain text or as its stored hash."""
    return Password(hashed=text) if text.startswith(_ARGON2_MARK) else to_stored(client_hash(text))


def matches(sent: str, password: Password | None) -> bool:
    """Whether a password sent by a client matches the stored one. None means the user does not exist."""
    if password is not None and not password.hashed and not sent:
        return True
    stored = password if password is not None and password.hashed else Password(hashed=_DUMMY_HASH)
    return _verify(sent, stored)


def is_outdated(password: Password) -> bool:
    """Whether a password should be stored again with the current cost."""
    if not password.hashed:
        return False
    return not password.hashed.startswith(_ARGON2_MARK) or _ARGON2.check_needs_rehash(password.hashed)


def _verify(sent: str, stored: Password) -> bool:
    if not stored.hashed.startswith(_ARGON2_MARK):
        hashed = hashlib.scrypt(_bytes(sent), salt=bytes.fromhex(stored.salt), **_SCRYPT)
        return hmac.compare_digest(hashed.hex(), stored.hashed)
    try:
        return _ARGON2.verify(stored.hashed, _bytes(sent))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(text: str) -> bytes:
    # JSON can contain lone surrogates.
    return text.encode("utf-8", "surrogatepass")

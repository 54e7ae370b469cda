"""Passwords as clients send them and as they are kept: Argon2id, and scrypt of versions before.

Every function but `hashed` and `is_outdated` is slow on purpose: not for an event loop. The work is done with
the lock of the interpreter released, so that a thread of its own keeps nobody waiting.
"""

from __future__ import annotations

import hashlib
import hmac

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from det_contracts.commands import Password

SALT = "GubPEmmotfiK9TMD6Zdw"
"""Of the hash that clients make before they send a password; it is part of the protocol and no secret."""
MEMORY_KIB = 64 << 10
PASSES = 2
_ARGON2 = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=1)
_ARGON2_MARK = "$argon2id$"
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "maxmem": 2**26}
_NOBODYS = "$argon2id$v=19$m=65536,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""Compared with where there is no password, so that the answer takes as long."""


def hashed(password: str) -> str:
    """A password as clients send it: hex of SHA-512, the empty one stays empty."""
    return hashlib.sha512(_bytes(SALT + password)).hexdigest() if password else ""


def kept(sent: str) -> Password:
    """What is kept of a password that a client sent."""
    return Password(hashed=_ARGON2.hash(_bytes(sent))) if sent else Password()


def from_setting(text: str) -> Password:
    """A password that an operator set in the clear, or as the hash that is kept of it."""
    return Password(hashed=text) if text.startswith(_ARGON2_MARK) else kept(hashed(text))


def fits(sent: str, password: Password | None) -> bool:
    """Whether a password that a client sent is the one that is kept; None for that of nobody."""
    if password is not None and not password.hashed and not sent:
        return True
    stored = password if password is not None and password.hashed else Password(hashed=_NOBODYS)
    return _compared(sent, stored)


def is_outdated(password: Password) -> bool:
    """Whether a password should be kept at today's cost instead."""
    if not password.hashed:
        return False
    return not password.hashed.startswith(_ARGON2_MARK) or _ARGON2.check_needs_rehash(password.hashed)


def _compared(sent: str, stored: Password) -> bool:
    if not stored.hashed.startswith(_ARGON2_MARK):
        found = hashlib.scrypt(_bytes(sent), salt=bytes.fromhex(stored.salt), **_SCRYPT)
        return hmac.compare_digest(found.hex(), stored.hashed)
    try:
        return _ARGON2.verify(stored.hashed, _bytes(sent))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(text: str) -> bytes:
    # JSON can hold halves of characters.
    return text.encode("utf-8", "surrogatepass")

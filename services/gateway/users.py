"""Who there is. Users are built in until they can be managed (REST spec, section 2)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

import msgspec

from det_contracts.problems import not_found
from services.gateway.web.errors import unauthenticated

SALT = "GubPEmmotfiK9TMD6Zdw"


class User(msgspec.Struct, frozen=True):
    """Somebody who may log in."""

    id: int
    username: str
    admin: bool
    password_hash: str = ""
    """As `hashed` makes it."""


USERS: Mapping[str, User] = {
    user.username: user for user in (User(1, "admin", True), User(2, "determined", False))
}


def hashed(password: str) -> str:
    """A password as clients send it: hex of SHA-512, the empty one stays empty."""
    return hashlib.sha512((SALT + password).encode()).hexdigest() if password else ""


def check(username: str, password: str, *, is_hashed: bool) -> User:
    """The user, if the password is theirs; raises `Refused` (401), not telling which of both is wrong."""
    user = USERS.get(username)
    sent = password if is_hashed else hashed(password)
    if user is None or not hmac.compare_digest(sent.encode(), user.password_hash.encode()):
        raise unauthenticated(f"user '{username}' and this password do not fit; run 'det user login'")
    return user


def by_name(username: str) -> User:
    """Raises `Refused` (not found)."""
    if username not in USERS:
        raise not_found("user", username)
    return USERS[username]


def by_id(id: int) -> User:
    """Raises `Refused` (not found)."""
    for user in USERS.values():
        if user.id == id:
            return user
    raise not_found("user", id)

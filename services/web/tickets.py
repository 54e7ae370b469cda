"""Tickets grant access to the pages of one task as part of their address.

A task's page runs in its own origin, for which browsers send no cookies. Its address therefore contains the
session token, sealed: the page, whose author is not trusted, can use it for this task only.
"""

from __future__ import annotations

import hashlib

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from services.kit import base64url

PREFIX = "~"
"""Marks a ticket, where a path could also contain a name."""


class BadTicket(Exception):
    """A ticket from another cluster or for another task."""


def seal(key: bytes, task_id: str, token: str) -> str:
    """Return a ticket for one task, valid as long as the session of the token."""
    return PREFIX + base64url.encode(bytes(_box(key, task_id).encrypt(token.encode())))


def unseal(key: bytes, task_id: str, ticket: str) -> str:
    """Return the token in a ticket. Raises `BadTicket`."""
    try:
        return _box(key, task_id).decrypt(base64url.decode(ticket.removeprefix(PREFIX))).decode()
    except (CryptoError, ValueError):
        raise BadTicket(f"this address is not for task {task_id}: open its page again") from None


def has_ticket(path: str) -> bool:
    """Whether a path is that of a task with a ticket."""
    parts = path.split("/", 4)
    return len(parts) > 3 and parts[1] == "proxy" and parts[3].startswith(PREFIX)


def _box(key: bytes, task_id: str) -> SecretBox:
    # Each task has its own key, so that a ticket fits no other task.
    own = hashlib.blake2b(task_id.encode(), key=key[:64], person=b"task-tickets", digest_size=32)
    return SecretBox(own.digest())

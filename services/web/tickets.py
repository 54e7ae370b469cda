"""Tickets: who may see the pages of one task, as a part of their address.

A task's page runs in an origin of its own, to which browsers give no cookie. So its address holds what the
session is known by, sealed: the page, whose author may be anybody, can use it for this task alone.
"""

from __future__ import annotations

import hashlib

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from services.kit import base64url

MARK = "~"
"""Before a ticket, where a path could also have a name."""


class BadTicket(Exception):
    """A ticket is not of this cluster, or is for another task."""


def seal(key: bytes, task_id: str, token: str) -> str:
    """A ticket for one task, which lasts as long as the session of the token."""
    return MARK + base64url.encode(bytes(_box(key, task_id).encrypt(token.encode())))


def unseal(key: bytes, task_id: str, ticket: str) -> str:
    """The token in a ticket; raises `BadTicket`."""
    try:
        return _box(key, task_id).decrypt(base64url.decode(ticket.removeprefix(MARK))).decode()
    except (CryptoError, ValueError):
        raise BadTicket(f"this address is not for task {task_id}: open its page again") from None


def are_in(path: str) -> bool:
    """Whether a path is one of a task with a ticket."""
    parts = path.split("/", 4)
    return len(parts) > 3 and parts[1] == "proxy" and parts[3].startswith(MARK)


def _box(key: bytes, task_id: str) -> SecretBox:
    # A key of its own for each task: a ticket fits no other.
    own = hashlib.blake2b(task_id.encode(), key=key[:64], person=b"task-tickets", digest_size=32)
    return SecretBox(own.digest())

"""How a task knows that a request comes through the gateway: by a key that only these two can work out.

A notebook or a shell listens on a port of its worker. Whoever else reaches that port has no key.
"""

from __future__ import annotations

import hashlib
import hmac

HEADER = "authorization"
SCHEME = "token"
"""The way that Jupyter's servers expect; a shell's own server expects the same."""


def page_key(task_token: str) -> str:
    """The key of one run, from its token, which the gateway can issue and the task was given.

    >>> page_key("task.a.b") == page_key("task.a.b")
    True
    """
    return hmac.digest(task_token.encode(), b"pages of this task", hashlib.sha256).hex()


def credential(task_token: str) -> str:
    """The value of the header `HEADER` of every request that the gateway passes on."""
    return f"{SCHEME} {page_key(task_token)}"

"""The key by which a task recognizes requests from the gateway. Only these two can compute it.

A notebook or a shell listens on a port of its worker. Other clients can reach that port, but do not have the
key.
"""

from __future__ import annotations

import hashlib
import hmac

HEADER = "authorization"
SCHEME = "token"
"""The scheme that Jupyter's servers expect; a shell's server uses it too."""


def page_key(task_token: str) -> str:
    """Return the key of a run, computed from its token, which the gateway issues and the task receives.

    >>> page_key("task.a.b") == page_key("task.a.b")
    True
    """
    # Not the token itself: the header crosses the network without TLS, and with the token one may do what the
    # run's owner may.
    return hmac.digest(task_token.encode(), b"pages of this task", hashlib.sha256).hex()


def credential(task_token: str) -> str:
    """Return the value of the header `HEADER` that the gateway adds to each forwarded request."""
    return f"{SCHEME} {page_key(task_token)}"

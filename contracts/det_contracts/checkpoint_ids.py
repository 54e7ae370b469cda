"""Ids of checkpoints that only the trial that made them can register.

Whoever can list a shared storage sees the id of a checkpoint as soon as its upload begins, and the first
trial that registers an id has it: it could be shown, restored and deleted as another's. So an id is the
digest of its trial and of a secret, which the trial tells when it registers the checkpoint. Such an id shows
what it is by its form, a UUID of version 8, so that nothing is remembered to judge it. Ids of other forms,
which earlier versions and Determined's own client make, have whoever is first (decision 97).
"""

from __future__ import annotations

import hashlib
import re
import uuid

_VERSION_8 = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_VERSION_BITS = ~(0xF << 76) & ~(0x3 << 62) & (2**128 - 1)


def make(trial_id: int, secret: str) -> str:
    """Return the id of a trial's checkpoint. `secret` must be random, and new for each checkpoint.

    >>> make(7, "6f1d")
    '2d4b6260-0ade-813b-8976-0ae1ad29ca98'
    """
    digest = hashlib.sha256(f"checkpoint of trial {trial_id}: {secret}".encode()).digest()[:16]
    number = int.from_bytes(digest, "big") & _VERSION_BITS | 0x8 << 76 | 0x2 << 62
    return str(uuid.UUID(int=number))


def may_register(trial_id: int, id: str, secret: str) -> bool:
    """Whether a trial may register a checkpoint under an id, given the secret that it tells.

    >>> id = make(7, "6f1d")
    >>> may_register(7, id, "6f1d"), may_register(8, id, "6f1d"), may_register(8, "chosen-freely", "")
    (True, False, True)
    """
    return _VERSION_8.fullmatch(id) is None or id == make(trial_id, secret)

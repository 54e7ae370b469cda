"""A worker's identity: its id, and the folder that distinguishes it from another worker with the same id.

A worker that was killed is accepted again at once, because its folder proves that it is the same one. Another
process with the id has another folder, is on another host, or finds the folder locked.
"""

from __future__ import annotations

import fcntl
import os
import socket
import uuid
from pathlib import Path

import msgspec

from det_contracts import ids
from services.kit.files import write_atomic

FILE = "identity.json"
LOCK = "lock"


class IdentityError(Exception):
    """This process cannot be the worker that it should be; the text says why and what to do."""


class Identity(msgspec.Struct, frozen=True):
    """One worker, for as long as its folder exists."""

    worker_id: str
    instance: str
    """Random, generated once for the folder."""
    host: str = ""
    """Its host. On another host it is another worker, even if the folder is a copy."""


def host_name() -> str:
    """This host's name, with only the characters that an id may contain."""
    name = socket.gethostname()
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:64] or "worker"


def claim(home: Path, requested_id: str) -> Identity:
    """Take the identity of this folder until this process ends.

    `requested_id` is the id. If empty, it is the folder's previous id or else the host's name. Raises
    `IdentityError`, or `OSError` from the disk.
    """
    if requested_id and not ids.is_token(requested_id):
        raise IdentityError(f"STEADFAST_WORKER_ID='{requested_id}': {ids.WORKER_ID_RULE}")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    _refuse_planted(home)
    if home.stat().st_uid == os.geteuid():
        # A folder made by something else, such as a container volume, may be open to all users.
        home.chmod(0o700)
    _lock(home)
    identity = _read(home / FILE)
    if identity is None:
        identity = Identity(requested_id or host_name(), uuid.uuid4().hex)
        write_atomic(home / FILE, msgspec.json.encode(identity))
    elif requested_id and requested_id != identity.worker_id:
        raise IdentityError(
            f"the folder {home} belongs to worker '{identity.worker_id}', not to '{requested_id}': give "
            f"this one its own STEADFAST_WORKER_HOME, or set STEADFAST_WORKER_ID={identity.worker_id}"
        )
    return msgspec.structs.replace(identity, host=socket.gethostname())


def _refuse_planted(home: Path) -> None:
    """Raise `IdentityError` if somebody else made a part of the path, in a folder where everybody may.

    Such as `/tmp`: they could replace what this worker keeps there, its keys and the commands that it runs.
    """
    path = home.absolute()
    for part in (path, *path.parents):
        owner = part.lstat().st_uid
        if part.parent.stat().st_mode & 0o002 and owner not in (0, os.geteuid()):
            raise IdentityError(
                f"{part} was made by user {owner}, who could change what this worker keeps in {home}: set "
                "STEADFAST_WORKER_HOME to a folder of its own user"
            )


def _lock(home: Path) -> None:
    """Lock the folder. The system releases the lock when this process ends, however it ends."""
    lock_file = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock_file, 20, 0).decode(errors="replace").strip()
        os.close(lock_file)
        raise IdentityError(
            f"a worker runs in the folder {home} already (process {owner or 'unknown'}): stop it first, or "
            "give this one its own STEADFAST_WORKER_HOME and STEADFAST_WORKER_ID"
        ) from None
    os.pwrite(lock_file, f"{os.getpid():<20}".encode(), 0)


def _read(path: Path) -> Identity | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise IdentityError(
            f"{path} is damaged ({error}): remove it, and the worker counts as a new one"
        ) from None

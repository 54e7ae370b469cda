"""Who a worker is: its id, and the folder by which it is told from another one of the same id.

A worker that was killed is back at once, as its folder says that it is the same. Another process with the id
has another folder, is on another host, or finds the folder locked.
"""

from __future__ import annotations

import fcntl
import os
import socket
import uuid
from pathlib import Path

import msgspec

from det_contracts import ids
from services.kit.files import write_whole

FILE = "identity.json"
LOCK = "lock"


class CannotBe(Exception):
    """This process cannot be the worker that it is to be; the text says why, and what to do."""


class Identity(msgspec.Struct, frozen=True):
    """One worker, for as long as its folder lives."""

    worker_id: str
    instance: str
    """Random, minted once for the folder."""
    host: str = ""
    """Where it runs; what is not the same is not the same worker, though the folder were a copy."""


def host_name() -> str:
    """This host's name, in the letters that an id may have."""
    name = socket.gethostname()
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:64] or "worker"


def claim(home: Path, wanted: str) -> Identity:
    """Be the worker of this folder until this process ends. Raises `CannotBe`, or OSError from the disk.

    `wanted` is the id; empty: the one that the folder has had, else the host's name.
    """
    if wanted and not ids.is_token(wanted):
        raise CannotBe(f"STEADFAST_WORKER_ID='{wanted}': {ids.WORKER_ID_RULE}")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if home.stat().st_uid == os.geteuid():
        # Made by somebody else, such as a container's volume, it may be open to everybody.
        home.chmod(0o700)
    _lock(home)
    identity = _read(home / FILE)
    if identity is None:
        identity = Identity(wanted or host_name(), uuid.uuid4().hex)
        write_whole(home / FILE, msgspec.json.encode(identity))
    elif wanted and wanted != identity.worker_id:
        raise CannotBe(
            f"the folder {home} belongs to worker '{identity.worker_id}', not to '{wanted}': give this one a "
            f"STEADFAST_WORKER_HOME of its own, or set STEADFAST_WORKER_ID={identity.worker_id}"
        )
    return msgspec.structs.replace(identity, host=socket.gethostname())


def _lock(home: Path) -> None:
    """Hold the folder's lock; the system gives it back when this process ends, however it does."""
    held = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(held, 20, 0).decode(errors="replace").strip()
        os.close(held)
        raise CannotBe(
            f"a worker runs in the folder {home} already (process {owner or 'unknown'}): stop it first, or "
            "give this one a STEADFAST_WORKER_HOME and a STEADFAST_WORKER_ID of its own"
        ) from None
    os.pwrite(held, f"{os.getpid():<20}".encode(), 0)


def _read(path: Path) -> Identity | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise CannotBe(
            f"{path} is damaged ({error}): remove it, and the worker counts as a new one"
        ) from None

"""Copies a running cluster on this machine into a folder: the log, and what cannot be rebuilt from it.

The cluster keeps running. Whatever refers to something is copied before its target, so that nothing the
backup refers to is missing: the metrics databases, then CONTROL, then the reports and log lines it is based
on; checkpoint files both before and after. The list of all files is written last; without it, the folder is
not a backup.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import time
from pathlib import Path
from typing import Any

import msgspec
from nacl import pwhash, utils
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from det_contracts import subjects
from det_contracts.metrics_shards import FURTHER_SHARDS, OWNER
from services.kit.files import write_atomic
from services.local.broker_command import Unreachable, connect_to_broker
from services.local.home import Home, Plan
from services.local.preconditions import is_running
from services.local.stream_copies import CannotCopy, export_stream

FORMAT = 1
MANIFEST_FILE = "manifest.json"
KEYS_FILE = "keys.box"
STREAMS = (subjects.CONTROL, subjects.REPORTS, subjects.LOGS, subjects.WITNESS)
"""In this order. Worker orders are derived from the log."""
METRICS_DATABASES = tuple(f"{owner}.db" for owner in (OWNER, *FURTHER_SHARDS))
"""Those that exist are copied. Other databases are rebuilt from the log."""
SECRET_FOLDERS = ("secrets", "tls")
ARCHIVE = "STEADFAST_ARCHIVE"


class CannotBackUp(Exception):
    """No usable backup was made, or nothing was restored. The text says why."""


class Entry(msgspec.Struct, frozen=True):
    """One file of a backup."""

    size: int
    digest: str
    """SHA-256."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a backup."""

    form: int = FORMAT
    made_at: float
    cluster: str
    salt: bytes
    """Salt of the key that encrypts the cluster's keys."""
    streams: dict[str, dict[str, Any]]
    checkpoints: str
    """Where checkpoints are stored, according to the log."""
    files: dict[str, Entry]


def back_up(home: Home, target: Path, key: bytes) -> Manifest:
    """Copy a running cluster into a new or empty folder. Raises `CannotBackUp`."""
    plan = home.plan()
    if plan is None:
        raise CannotBackUp(f"there is no cluster '{home.name}'")
    if not is_running(home):
        raise CannotBackUp(f"cluster '{home.name}' is not running: start it first; its broker has the data")
    if target.exists() and any(target.iterdir()):
        raise CannotBackUp(f"{target} is not empty: choose a new folder for the backup")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    storage = Path(plan.storage) if plan.storage else home.path / "checkpoints"
    salt = utils.random(pwhash.argon2id.SALTBYTES)
    # The order matters: a database may be behind the log, which then completes it, but never ahead of it.
    for name in METRICS_DATABASES:
        _copy_database(home.path / "databases" / name, target / name)
    _copy_missing(storage, target / "checkpoints")
    try:
        streams = asyncio.run(_copy_streams(home, plan, target))
    except CannotCopy as error:
        raise CannotBackUp(str(error)) from error
    except Unreachable as error:
        raise CannotBackUp(f"the broker of cluster '{home.name}' does not answer: {error}") from error
    # After the log, since a blob is stored before the event that names it.
    _copy_missing(home.path / "blobs", target / "blobs")
    if (archive := archive_of(plan)) is not None:
        _copy_missing(archive, target / "archive")
    # A second time, for checkpoints that the log names by now. The first pass, which takes long, keeps the
    # gap short.
    _copy_missing(storage, target / "checkpoints")
    write_atomic(target / KEYS_FILE, key_box(key, salt).encrypt(_pack_keys(home)))
    write_atomic(target / "plan.json", (home.path / "plan.json").read_bytes())
    entries = {str(path.relative_to(target)): entry_of(path) for path in _files(target)}
    manifest = Manifest(
        made_at=time.time(),
        cluster=home.name,
        salt=salt,
        streams=streams,
        checkpoints=str(storage),
        files=entries,
    )
    # Last: a folder without it is no backup, however much of it is there.
    write_atomic(target / MANIFEST_FILE, msgspec.json.encode(manifest))
    return manifest


def archive_of(plan: Plan) -> Path | None:
    """Return the directory of the cluster's archive; None if it has none, or one in a bucket."""
    place = plan.settings.get(ARCHIVE) or os.environ.get(ARCHIVE) or ""
    return Path(place) if place.startswith("/") else None


def key_box(key: bytes, salt: bytes) -> SecretBox:
    """Return the box that encrypts the cluster's keys, for a passphrase or the content of a key file."""
    made = pwhash.argon2id.kdf(
        SecretBox.KEY_SIZE,
        key,
        salt,
        opslimit=pwhash.argon2id.OPSLIMIT_MODERATE,
        memlimit=pwhash.argon2id.MEMLIMIT_MODERATE,
    )
    return SecretBox(made)


def decrypt_keys(box: SecretBox, sealed: bytes) -> bytes:
    """Decrypt the keys of a cluster. Raises `CannotBackUp` for a wrong key."""
    try:
        return box.decrypt(sealed)
    except CryptoError:
        raise CannotBackUp("this is not the key that the backup was made with; nothing was done") from None


def entry_of(path: Path) -> Entry:
    """Return a file's size and digest."""
    with path.open("rb") as file:
        return Entry(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database as of one moment, while its service writes."""
    if not source.exists():
        return
    with contextlib.ExitStack() as stack:
        live = stack.enter_context(contextlib.closing(sqlite3.connect(source)))
        live.backup(stack.enter_context(contextlib.closing(sqlite3.connect(target))))


def _copy_missing(source: Path, target: Path) -> None:
    """Copy files that are missing in the target. Files that vanish meanwhile were deleted by the cluster."""
    for path in _files(source) if source.is_dir() else ():
        copy = target / path.relative_to(source)
        # Files of checkpoints and blobs are written once, and never changed.
        if copy.exists() and copy.stat().st_size == path.stat().st_size:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(path, copy)


async def _copy_streams(home: Home, plan: Plan, target: Path) -> dict[str, dict[str, Any]]:
    ports = home.read("ports.json") or {}
    url = plan.broker_url(ports["broker"])
    authority = home.authority(plan)
    credentials = home.path / "secrets" / "operator.creds"
    streams = {}
    async with connect_to_broker(url, credentials, authority) as connection:
        for stream in STREAMS:
            path = target / "streams" / stream
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                streams[stream] = await export_stream(connection, stream, file.write)
    return streams


def _pack_keys(home: Home) -> bytes:
    """Pack the folders with keys into one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in SECRET_FOLDERS:
            if (home.path / name).is_dir():
                tar.add(home.path / name, arcname=name)
    return packed.getvalue()

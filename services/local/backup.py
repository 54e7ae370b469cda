"""Copies a running cluster of this machine into a folder: the log, and what cannot be made again from it.

Whoever runs goes on. What refers to something is copied before what it refers to, so that nothing is missing
of what the backup speaks of: the metrics database, then CONTROL, then the reports and lines that it was
judged by; files of checkpoints before and after. The list of all files is written last: without it there is
no backup.
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
import nats
from nacl import pwhash, utils
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from det_contracts import subjects
from services.kit.files import write_whole
from services.kit.tls import broker_options
from services.local.home import Home, Plan
from services.local.preconditions import is_running
from services.local.stream_copies import CannotCopy, take_out

FORM = 1
LIST = "manifest.json"
KEYS = "keys.box"
STREAMS = (subjects.CONTROL, subjects.REPORTS, subjects.LOGS, subjects.WITNESS)
"""In this order; orders to workers follow from the log."""
SECRET = ("secrets", "tls")
ARCHIVE = "STEADFAST_ARCHIVE"


class CannotBackUp(Exception):
    """Nothing that could be restored was made, or nothing was restored; the text says why."""


class Entry(msgspec.Struct, frozen=True):
    """One file of a backup."""

    size: int
    digest: str
    """SHA-256."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds."""

    form: int = FORM
    made_at: float
    cluster: str
    salt: bytes
    """Of the key that the keys of the cluster are encrypted with."""
    streams: dict[str, dict[str, Any]]
    checkpoints: str
    """Where the log says that checkpoints lie."""
    files: dict[str, Entry]


def back_up(home: Home, target: Path, key: bytes) -> Manifest:
    """Copy a cluster that runs into a folder that is not there yet; raises `CannotBackUp`."""
    plan = home.plan()
    if plan is None:
        raise CannotBackUp(f"there is no cluster '{home.name}'")
    if not is_running(home):
        raise CannotBackUp(f"cluster '{home.name}' does not run: start it, its broker gives what it holds")
    if target.exists() and any(target.iterdir()):
        raise CannotBackUp(f"{target} is not empty: a backup goes into a folder of its own")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    storage = Path(plan.storage) if plan.storage else home.path / "checkpoints"
    salt = utils.random(pwhash.argon2id.SALTBYTES)
    _copy_database(home.path / "databases" / "metrics.db", target / "metrics.db")
    _copy_new(storage, target / "checkpoints")
    try:
        streams = asyncio.run(_copy_streams(home, plan, target))
    except CannotCopy as error:
        raise CannotBackUp(str(error)) from error
    _copy_new(home.path / "blobs", target / "blobs")
    if (archive := archive_of(plan)) is not None:
        _copy_new(archive, target / "archive")
    _copy_new(storage, target / "checkpoints")
    write_whole(target / KEYS, box_of(key, salt).encrypt(_packed(home)))
    write_whole(target / "plan.json", (home.path / "plan.json").read_bytes())
    entries = {str(path.relative_to(target)): entry_of(path) for path in _files(target)}
    manifest = Manifest(
        made_at=time.time(),
        cluster=home.name,
        salt=salt,
        streams=streams,
        checkpoints=str(storage),
        files=entries,
    )
    write_whole(target / LIST, msgspec.json.encode(manifest))
    return manifest


def archive_of(plan: Plan) -> Path | None:
    """The directory of the cluster's archive; None where it has none, or one in a bucket."""
    place = plan.settings.get(ARCHIVE) or os.environ.get(ARCHIVE) or ""
    return Path(place) if place.startswith("/") else None


def box_of(key: bytes, salt: bytes) -> SecretBox:
    """What encrypts and opens the keys of a cluster, by a passphrase or the content of a key file."""
    made = pwhash.argon2id.kdf(
        SecretBox.KEY_SIZE,
        key,
        salt,
        opslimit=pwhash.argon2id.OPSLIMIT_MODERATE,
        memlimit=pwhash.argon2id.MEMLIMIT_MODERATE,
    )
    return SecretBox(made)


def opened(box: SecretBox, sealed: bytes) -> bytes:
    """The keys of a cluster; raises `CannotBackUp` for a wrong key."""
    try:
        return box.decrypt(sealed)
    except CryptoError:
        raise CannotBackUp("this is not the key that the backup was made with; nothing was done") from None


def entry_of(path: Path) -> Entry:
    """What a file is known by."""
    with path.open("rb") as file:
        return Entry(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _copy_database(source: Path, target: Path) -> None:
    """As it is at one moment, while its service writes."""
    if not source.exists():
        return
    with contextlib.ExitStack() as stack:
        live = stack.enter_context(contextlib.closing(sqlite3.connect(source)))
        live.backup(stack.enter_context(contextlib.closing(sqlite3.connect(target))))


def _copy_new(source: Path, target: Path) -> None:
    """Copy what is not there yet; files that go away meanwhile are what a deletion takes."""
    for path in _files(source) if source.is_dir() else ():
        copy = target / path.relative_to(source)
        if copy.exists() and copy.stat().st_size == path.stat().st_size:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(path, copy)


async def _copy_streams(home: Home, plan: Plan, target: Path) -> dict[str, dict[str, Any]]:
    ports = home.read("ports.json") or {}
    url = plan.broker_url(ports["broker"])
    authority = home.authority(plan)
    credentials = str(home.path / "secrets" / "operator.creds")
    connection = await nats.connect(url, user_credentials=credentials, **broker_options(url, authority))
    streams = {}
    try:
        for stream in STREAMS:
            path = target / "streams" / stream
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                streams[stream] = await take_out(connection, stream, file.write)
    finally:
        await connection.close()
    return streams


def _packed(home: Home) -> bytes:
    """The folders with keys as one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in SECRET:
            if (home.path / name).is_dir():
                tar.add(home.path / name, arcname=name)
    return packed.getvalue()

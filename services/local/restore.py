"""Restores a cluster from a backup, on this machine or another one, completely or not at all."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import msgspec

from services.kit import broker
from services.local.backup import (
    ARCHIVE,
    FORMAT,
    KEYS_FILE,
    MANIFEST_FILE,
    METRICS_DATABASES,
    STREAMS,
    CannotBackUp,
    Manifest,
    decrypt_keys,
    entry_of,
    key_box,
)
from services.local.broker_command import Unreachable, connect_to_broker
from services.local.home import Home
from services.local.keys import write_keys
from services.local.stream_copies import CannotCopy, import_stream

METRICS_STORE = "STEADFAST_METRICS_STORE"
MAX_LISTED = 5
"""Maximum number of files listed in a message."""


def restore(home: Home, source: Path, key: bytes, port: int | None = None) -> Manifest:
    """Restore a backup as `home`, which must not exist yet. It can then be started like any cluster.

    Checkpoints are restored to where the log says they are. Raises `CannotBackUp` and leaves nothing behind.
    """
    manifest = verify_backup(source)
    keys = decrypt_keys(key_box(key, manifest.salt), (source / KEYS_FILE).read_bytes())
    storage = Path(manifest.checkpoints)
    _refuse_existing(home, storage, source)
    staging = Home(f"{home.name}.restoring", home.path.parent.parent)
    shutil.rmtree(staging.path, ignore_errors=True)
    staging.folder()
    try:
        with tarfile.open(fileobj=io.BytesIO(keys)) as tar:
            # Before the log, which the broker stores under the account of these keys.
            tar.extractall(staging.path, filter="data")
        _import_log(staging, source, manifest)
        _copy(source / "blobs", staging.path / "blobs")
        for name in METRICS_DATABASES:
            if (source / name).exists():
                shutil.copy2(source / name, staging.folder("databases") / name)
        _copy(source / "archive", staging.path / "archive")
        _write_plan(home, staging, source, manifest, port)
        _copy(source / "checkpoints", partial := storage.with_name(f"{storage.name}.restoring"))
        if partial.exists():
            storage.parent.mkdir(parents=True, exist_ok=True)
            partial.replace(storage)
        # Last, and in one step: an interrupted restore leaves nothing that could be started.
        staging.path.rename(home.path)
    except (CannotCopy, Unreachable) as error:
        raise CannotBackUp(str(error)) from error
    finally:
        shutil.rmtree(staging.path, ignore_errors=True)
    return manifest


def verify_backup(source: Path) -> Manifest:
    """Verify every file of a backup and return its manifest. Raises `CannotBackUp`."""
    try:
        manifest = msgspec.json.decode((source / MANIFEST_FILE).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise CannotBackUp(f"{source} is not a complete backup: it has no {MANIFEST_FILE}") from None
    except msgspec.MsgspecError as error:
        raise CannotBackUp(f"{source / MANIFEST_FILE} is damaged: {error}") from None
    if manifest.form != FORMAT:
        raise CannotBackUp(
            f"{source} has form {manifest.form}, this version reads {FORMAT}: update Steadfast"
        )
    wrong = [name for name, entry in manifest.files.items() if _differs(source / name, entry)]
    if wrong:
        names = ", ".join(wrong[:MAX_LISTED]) + (", ..." if len(wrong) > MAX_LISTED else "")
        raise CannotBackUp(f"{source} is incomplete or damaged: {names}; nothing was done")
    return manifest


def _differs(path: Path, entry: object) -> bool:
    return not path.is_file() or entry_of(path) != entry


def _refuse_existing(home: Home, storage: Path, source: Path) -> None:
    if home.path.exists():
        raise CannotBackUp(
            f"there is a cluster '{home.name}' already, in {home.path}: choose another name, or remove it"
        )
    if (source / "checkpoints").exists() and storage.is_dir() and any(storage.iterdir()):
        raise CannotBackUp(
            f"{storage}, where the checkpoints of the backup belong, is not empty. Move it away, together "
            "with the cluster that uses it, or restore on another machine"
        )


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)


def _write_plan(home: Home, staging: Home, source: Path, manifest: Manifest, port: int | None) -> None:
    plan = json.loads((source / "plan.json").read_bytes())
    # The process with which the cluster was to end is not the one that restores it.
    plan |= {"name": home.name, "storage": manifest.checkpoints, "ends_with": 0}
    if port is not None:
        plan["port"] = port
    if (source / "archive").is_dir():
        plan["settings"] = plan["settings"] | {ARCHIVE: str(home.path / "archive")}
    if store := plan["settings"].get(METRICS_STORE):
        # Both clusters have the same log, and each removes what its own copies do not need.
        plan["settings"] |= {METRICS_STORE: f"{store.rstrip('/')}/restored-as-{home.name}"}
    staging.write("plan.json", plan)


def _import_log(staging: Home, source: Path, manifest: Manifest) -> None:
    """Run a broker with the restored keys to write the log where the cluster will look for it."""
    authority = write_keys(staging.folder("secrets"))
    with broker.held_port() as client_port, broker.held_port() as other:
        port, monitor = broker.port_of(client_port), broker.port_of(other)
        config = broker.write_config(
            staging.folder("broker"), port=port, monitor_port=monitor, authority=authority
        )
        process = subprocess.Popen(
            broker.command(config), env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            broker.wait_until_healthy(monitor)
            asyncio.run(_import_streams(staging, port, source, manifest))
        finally:
            # A regular shutdown, so that the broker writes down the state of its streams.
            process.terminate()
            process.wait()


async def _import_streams(staging: Home, port: int, source: Path, manifest: Manifest) -> None:
    credentials = staging.path / "secrets" / "operator.creds"
    async with connect_to_broker(f"nats://127.0.0.1:{port}", credentials) as connection:
        for stream in STREAMS:
            with (source / "streams" / stream).open("rb") as file:
                await import_stream(connection, stream, manifest.streams[stream], file)

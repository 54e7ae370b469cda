"""Restores a cluster from a backup, on this machine or another one, completely or not at all."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

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
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def restore(
    home: Home, source: Path, key: bytes, port: int | None = None, *, without_damaged: bool = False
) -> list[str]:
    """Restore a backup as `home`, which must not exist yet. It can then be started like any cluster.

    Checkpoints are restored to where the log says they are. Returns what is lost, which is nothing unless
    `without_damaged` permits it. Raises `CannotBackUp` and leaves nothing behind.
    """
    manifest, losses = verify_backup(source, without_damaged=without_damaged)
    left_out = {source / loss.left_out for loss in losses}
    keys = decrypt_keys(key_box(key, manifest.salt), (source / KEYS_FILE).read_bytes())
    storage = Path(manifest.checkpoints)
    _refuse_existing(home, storage, source)
    partial = storage.with_name(f"{storage.name}.restoring")
    staging = Home(f"{home.name}.restoring", home.path.parent.parent)
    # What a restore left that was killed must not become part of this one.
    for begun in (staging.path, partial):
        shutil.rmtree(begun, ignore_errors=True)
    staging.folder()
    try:
        with tarfile.open(fileobj=io.BytesIO(keys)) as tar:
            # Before the log, which the broker stores under the account of these keys.
            tar.extractall(staging.path, filter="data")
        _import_log(staging, source, manifest)
        _copy(source / "blobs", staging.path / "blobs", left_out)
        for name in METRICS_DATABASES:
            if (source / name).exists() and source / name not in left_out:
                shutil.copy2(source / name, staging.folder("databases") / name)
        _copy(source / "archive", staging.path / "archive")
        _write_plan(home, staging, source, manifest, port)
        if any(source / name in left_out for name in METRICS_DATABASES):
            _stop_copying_metrics(staging)
        _copy(source / "checkpoints", partial, left_out)
        if partial.exists():
            storage.parent.mkdir(parents=True, exist_ok=True)
            partial.replace(storage)
        # Last, and in one step: an interrupted restore leaves nothing that could be started.
        staging.path.rename(home.path)
    except (CannotCopy, Unreachable) as error:
        raise CannotBackUp(str(error)) from error
    finally:
        for begun in (staging.path, partial):
            shutil.rmtree(begun, ignore_errors=True)
    return list(dict.fromkeys(loss.what for loss in losses))


def verify_backup(source: Path, *, without_damaged: bool = False) -> tuple[Manifest, list[Loss]]:
    """Verify every file of a backup. Returns its manifest, and what has to be left out.

    Raises `CannotBackUp` if anything has to be, unless `without_damaged` permits it.
    """
    manifest = _read_manifest(source)
    losses = [loss_of(name) for name, entry in manifest.files.items() if _differs(source / name, entry)]
    needed = [loss for loss in losses if not loss.what]
    if needed:
        why = "without which there is no cluster: copy it here again, or take another backup"
        raise CannotBackUp(f"{source} is incomplete or damaged: {_listed(needed)}, {why}; nothing was done")
    if losses and not without_damaged:
        raise CannotBackUp(
            f"{source} is incomplete or damaged: {_listed(losses)}; nothing was done. Copy it here again; or "
            f"add --without-damaged to restore everything else, and lose {_lost(losses)}"
        )
    return manifest, losses


def _read_manifest(source: Path) -> Manifest:
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
    return manifest


class Loss(NamedTuple):
    """A damaged file of a backup."""

    name: str
    what: str
    """What is lost without it; empty: everything."""
    left_out: str
    """What is not restored then: the file, or the folder that is of no use without it."""


def loss_of(name: str) -> Loss:
    """What a restored cluster lacks without a file of its backup."""
    folder, *rest = name.split("/")
    if folder == "checkpoints" and len(rest) > 1 and _UUID.fullmatch(rest[0]):
        # All of it: who loads it is told that it is missing, and trains on with no half of one.
        return Loss(name, f"checkpoint {rest[0]}", f"{folder}/{rest[0]}")
    if folder == "checkpoints":
        return Loss(name, f"the file {'/'.join(rest)} of the checkpoint storage", name)
    if folder == "blobs":
        return Loss(name, f"the submitted code {rest[-1]}", name)
    if name in METRICS_DATABASES:
        return Loss(name, f"curves and log lines of {name} that REPORTS and LOGS no longer hold", name)
    return Loss(name, "", name)


def _listed(losses: Sequence[Loss]) -> str:
    names = ", ".join(loss.name for loss in losses[:MAX_LISTED])
    return names + (f" and {len(losses) - MAX_LISTED} more files" if len(losses) > MAX_LISTED else "")


def _lost(losses: Iterable[Loss]) -> str:
    whats = list(dict.fromkeys(loss.what for loss in losses))
    more = f" and {len(whats) - MAX_LISTED} more" if len(whats) > MAX_LISTED else ""
    return ", ".join(whats[:MAX_LISTED]) + more


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


def _copy(source: Path, target: Path, left_out: Container[Path] = ()) -> None:
    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name) in left_out]

    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)


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


def _stop_copying_metrics(staging: Home) -> None:
    """Let the metrics service begin with what REPORTS and LOGS hold.

    Its place for copies has none yet, and a service that has such a place waits for the copy that the log
    names.
    """
    plan = staging.read("plan.json")
    assert plan is not None  # noqa: S101 - for the type checker
    plan["settings"].pop(METRICS_STORE, None)
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

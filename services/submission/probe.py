"""Checks, before anything runs, that a file can be stored in a checkpoint storage, read back and deleted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from det_contracts.object_stores import azure_account
from det_contracts.problems import invalid
from det_contracts.roots import Roots
from services.kit.addresses import Addresses, AddressRefused
from services.kit.allowed_paths import is_within, storage_folder
from services.kit.blobs import describe_storage_error, s3_client
from services.kit.object_stores import ObjectStore, ObjectStoreError, check_address
from services.kit.storage import (
    WITHIN_S,
    StorageRefused,
    can_write_and_read,
    describe,
    round_trip,
    s3_round_trip,
)

PROBE_CONTENT = b"can be written and read"


def probe(storage: dict[str, Any], roots: Roots | None, addresses: Addresses) -> None:
    """Probe a completed `checkpoint_storage`. Blocking.

    Directories are probed only if this host shares them with the workers, and only below the storage `roots`;
    anywhere else the script writes, if it may. A bucket is probed only if the configuration contains keys,
    because otherwise the workers' own keys are used, as always for Google's.
    Raises `Refused` (400) naming the place and the user id.
    """
    try:
        if storage["type"] in ("shared_fs", "directory"):
            if roots is not None and is_within(storage, roots):
                _probe_directory(storage_folder(storage, roots), make=storage["type"] == "shared_fs")
        elif storage["type"] == "s3" and storage.get("access_key"):
            _probe_bucket(storage, addresses)
        elif storage["type"] == "azure":
            _probe_container(storage, addresses)
    except (OSError, ValueError) as error:
        raise invalid(f"<config>.checkpoint_storage cannot be used: {error}") from None


def _probe_directory(path: Path, *, make: bool) -> None:
    # What is missing is noted before it is made: the probe must leave behind only what was there.
    missing = [folder for folder in (path, *path.parents) if not folder.exists()] if make else []
    try:
        if make:
            path.mkdir(parents=True, exist_ok=True)
        if not can_write_and_read(path, PROBE_CONTENT):
            raise OSError(None, "it returns other content than was written")
    except OSError as error:
        raise OSError(
            f"{path} refuses user id {os.getuid()}: {error.strerror or error}; "
            "check that the directory exists, has free space and is writable"
        ) from error
    finally:
        _remove_created(missing)


def _remove_created(made: list[Path]) -> None:
    """Remove the directories made for the probe. Storing the first checkpoint creates them again."""
    try:
        for directory in made:
            directory.rmdir()
    except OSError:
        return


def _probe_bucket(storage: dict[str, Any], addresses: Addresses) -> None:
    place = f"s3://{storage['bucket']} at {storage.get('endpoint_url') or 'Amazon S3'}"
    try:
        same = _round_trips(storage, addresses)
    except AddressRefused:
        raise
    except Exception as error:
        raise OSError(f"{place}: {describe_storage_error(error)}") from error
    if not same:
        raise OSError(f"{place} returns other content than was written")


def _probe_container(storage: dict[str, Any], addresses: Addresses) -> None:
    account = azure_account(storage)
    check_address(storage, addresses)
    if not account.credential:
        return
    try:
        round_trip(ObjectStore(storage, WITHIN_S / 3), storage)
    except StorageRefused as error:
        raise OSError(str(error)) from error
    except ObjectStoreError as error:
        raise OSError(f"{describe(storage)}: {error.user_text}") from error


def _round_trips(storage: dict[str, Any], addresses: Addresses) -> bool:
    client = s3_client(
        storage.get("endpoint_url"), storage["access_key"], storage.get("secret_key"), addresses, WITHIN_S
    )
    return s3_round_trip(client, storage, PROBE_CONTENT)

"""Whether a checkpoint storage takes, gives back and deletes a file, found out before anything runs."""

from __future__ import annotations

import io
import os
import posixpath
import uuid
from pathlib import Path
from typing import Any

from det_contracts.problems import invalid
from det_contracts.roots import Roots
from services.kit.blobs import naming_the_place, s3_client
from services.kit.reach import is_within, storage_folder

TEXT = b"can be written and read"


def probe(storage: dict[str, Any], roots: Roots | None) -> None:
    """Try a completed `checkpoint_storage`. Blocking; raises `Refused` (400) with the place and the user id.

    Directories are tried only where they are the workers' own, and only below the storage `roots`: elsewhere
    it is the script that writes, if it may. A bucket is tried only with keys in the configuration, since else
    the keys are the workers'.
    """
    try:
        if storage["type"] in ("shared_fs", "directory"):
            if roots is not None and is_within(storage, roots):
                _try_directory(storage_folder(storage, roots), make=storage["type"] == "shared_fs")
        elif storage["type"] == "s3" and storage.get("access_key"):
            _try_bucket(storage)
    except (OSError, ValueError) as error:
        raise invalid(f"<config>.checkpoint_storage cannot be used: {error}") from None


def _try_directory(path: Path, *, make: bool) -> None:
    missing = [one for one in (path, *path.parents) if not one.exists()] if make else []
    file = path / f".probe-{uuid.uuid4().hex}"
    try:
        if make:
            path.mkdir(parents=True, exist_ok=True)
        file.write_bytes(TEXT)
        if file.read_bytes() != TEXT:
            raise OSError(None, "it gives back something else than was written")
        file.unlink()
    except OSError as error:
        raise OSError(
            f"{path} refuses user id {os.getuid()}: {error.strerror or error}; "
            "check that the directory exists, has free space and is writable"
        ) from error
    finally:
        _tidy(file, missing)


def _tidy(file: Path, made: list[Path]) -> None:
    """Leave nothing behind: what is needed is made again by who stores the first checkpoint."""
    try:
        file.unlink(missing_ok=True)
        for directory in made:
            directory.rmdir()
    except OSError:
        return


def _try_bucket(storage: dict[str, Any]) -> None:
    client = s3_client(storage.get("endpoint_url"), storage["access_key"], storage.get("secret_key"))
    bucket = storage["bucket"]
    name = posixpath.join((storage.get("prefix") or "").strip("/"), f"probe-{uuid.uuid4().hex}")
    with naming_the_place(f"s3://{bucket}/{name} at {storage.get('endpoint_url') or 'Amazon S3'}"):
        client.put_object(bucket, name, io.BytesIO(TEXT), len(TEXT))
        answer = client.get_object(bucket, name)
        try:
            same = answer.data == TEXT
        finally:
            answer.close()
            answer.release_conn()
        client.remove_object(bucket, name)
    if not same:
        raise OSError(f"s3://{bucket} gives back something else than was written")

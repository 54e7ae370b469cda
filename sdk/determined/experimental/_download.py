"""Downloads checkpoint files, directly from the storage or through the master (client spec, section 2).

`metadata.json` is written last in every mode, so a directory that contains it is complete.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, cast

from determined import errors, storage
from determined.common.api.errors import BadRequestException
from determined.storage.build import shared_fs_path
from determined.transport.rest import Session

METADATA = "metadata.json"
MOUNTED_AT = "/determined_shared_fs"
_KEYS = ("access_key", "secret_key")
_SECRETS = (*_KEYS, "connection_string", "credential")
_ANYTHING = Exception
"""Storage clients may raise any exception."""


def direct(uuid: str, config: Mapping[str, Any], target: Path) -> None:
    """Download from the storage that the experiment configuration names.

    Raises FileNotFoundError if a shared file system is not mounted here. Storage errors are passed on.
    """
    folder = _shared_fs(uuid, config) if config.get("type") == "shared_fs" else _build(config)
    folder.download(uuid, target, lambda name: name != METADATA)
    if METADATA in folder.list_resources(uuid):
        folder.download(uuid, target, lambda name: name == METADATA)


def through_master(session: Session, uuid: str, resources: Mapping[str, int], target: Path) -> None:
    """Download an archive built by the master. Raises `ProxiedDownloadFailed` and leaves no partial files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that files can be renamed into it: another file system would need copies.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        try:
            with session.open(f"/checkpoints/{uuid}", "application/gzip") as packed:
                _unpack(packed, Path(scratch))
        except (BadRequestException, tarfile.TarError, EOFError, OSError) as error:
            raise errors.ProxiedDownloadFailed(
                f"checkpoint {uuid} cannot be downloaded through the master: {error}"
            ) from error
        _check(uuid, resources, Path(scratch))
        _move(Path(scratch), target)


def either(session: Session, uuid: str, config: Mapping[str, Any], resources: Any, target: Path) -> None:
    """Download directly, or else through the master. Raises `MultipleDownloadsFailed` if both fail."""
    try:
        if _may_reach(config):
            return direct(uuid, config, target)
        first: Exception = errors.NoDirectStorageAccess("no credentials for the storage are configured here")
    except _ANYTHING as error:
        first = error
    try:
        through_master(session, uuid, resources, target)
    except errors.ProxiedDownloadFailed as second:
        if isinstance(first, FileNotFoundError):
            raise first from second
        raise errors.MultipleDownloadsFailed(
            f"checkpoint {uuid} can be downloaded neither from its storage ({first}) nor "
            f"through the master ({second})"
        ) from second


def _shared_fs(uuid: str, config: Mapping[str, Any]) -> storage.SharedFSStorageManager:
    host, inner = config["host_path"], config.get("storage_path")
    places = [shared_fs_path(host, inner), shared_fs_path(host, inner, MOUNTED_AT)]
    for place in places:
        if Path(place, uuid).is_dir():
            return storage.SharedFSStorageManager(place)
    raise FileNotFoundError(
        f"checkpoint {uuid} is neither in {places[0]} nor in {places[1]}: for a direct download "
        "the shared file system of the cluster must be mounted here; mode=DownloadMode.MASTER needs no mount"
    )


def _build(config: Mapping[str, Any]) -> storage.StorageManager:
    """Build the storage without the keys that the master masks, so that the user's own credentials apply."""
    answer = {key: value for key, value in config.items() if not (key in _SECRETS and _is_masked(value))}
    if not answer.get("secret_key"):
        # One key of a pair is useless, and would hide the user's own.
        answer = {key: value for key, value in answer.items() if key not in _KEYS}
    return storage.build(answer)


def _is_masked(value: Any) -> bool:
    return isinstance(value, str) and set(value) == {"*"}


def _may_reach(config: Mapping[str, Any]) -> bool:
    """Whether a direct download from an object store is worth trying.

    Without any credentials, the client would spend many seconds asking the network for an instance role.
    """
    if config.get("type") == "gcs":
        return _has_google_credentials()
    if config.get("type") == "azure":
        return not any(_is_masked(config.get(name)) for name in _SECRETS)
    if config.get("type") != "s3" or (config.get("secret_key") and not _is_masked(config["secret_key"])):
        return True
    named = ("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "MINIO_ACCESS_KEY", "MINIO_ROOT_USER")
    file = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or _at_home(".aws/credentials"))
    return any(os.environ.get(name) for name in named) or file.is_file()


def _has_google_credentials() -> bool:
    named = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY")
    file = Path(_at_home(".config/gcloud/application_default_credentials.json"))
    return any(os.environ.get(name) for name in (*named, "STORAGE_EMULATOR_HOST")) or file.is_file()


def _at_home(name: str) -> str:
    # Unlike `Path.home`, this does not fail for a user without a home directory.
    return os.path.expanduser(f"~/{name}")


def _unpack(packed: IO[bytes], target: Path) -> None:
    # Decompressed separately, because tarfile's own stream reader does not check that the stream is complete.
    with gzip.GzipFile(fileobj=packed) as plain:
        with tarfile.open(fileobj=cast("IO[bytes]", plain), mode="r|") as archive:
            archive.extractall(target, filter="data")
        while plain.read(1 << 20):
            pass


def _check(uuid: str, resources: Mapping[str, int], folder: Path) -> None:
    for name, size in resources.items():
        path = folder / name
        complete = (
            path.is_dir() if name.endswith("/") else path.is_file() and path.stat().st_size == int(size)
        )
        if not complete and name != METADATA:
            raise errors.ProxiedDownloadFailed(
                f"checkpoint {uuid} was not downloaded completely through the master: "
                f"{name} is missing or too short"
            )


def _move(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*"), key=_last(METADATA, source)):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        else:
            os.replace(path, place)


def _last(name: str, source: Path) -> Callable[[Path], tuple[bool, Path]]:
    return lambda path: (path == source / name, path)

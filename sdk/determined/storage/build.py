"""Creates a storage from a configuration or a string."""

import os
import pathlib
import posixpath
import tempfile
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlparse

from determined.storage.base import StorageManager
from determined.storage.clouds import AzureStorageManager, GCSStorageManager
from determined.storage.directory import SharedFSStorageManager
from determined.storage.s3 import S3StorageManager


def shared_fs_path(host_path: str, storage_path: str | None, container_path: str | None = None) -> str:
    """Return the absolute directory of a shared_fs storage, as this process sees it.

    `storage_path` is relative to `host_path` or an absolute path inside it; otherwise ValueError is raised.
    If given, `container_path` replaces `host_path`. Processes outside a container pass None.
    """
    if not posixpath.isabs(host_path):
        raise ValueError(f"checkpoint_storage.host_path must be an absolute path, not {host_path!r}")
    host = posixpath.normpath(host_path)
    # Normalized before it is compared, or `..` would lead out of `host_path`.
    full = posixpath.normpath(posixpath.join(host, storage_path or ""))
    if full != host and not full.startswith(host.rstrip("/") + "/"):
        raise ValueError(
            f"checkpoint_storage.storage_path must be a subdirectory of host_path: "
            f"{storage_path!r} leads out of {host_path!r}"
        )
    if container_path is None:
        return full
    return posixpath.normpath(posixpath.join(container_path, posixpath.relpath(full, host)))


def _shared_fs(
    container: str | None,
    *,
    host_path: str,
    storage_path: str | None = None,
    propagation: object = None,
    container_path: object = None,
    checkpoint_path: object = None,
    tensorboard_path: object = None,
) -> StorageManager:
    return SharedFSStorageManager(shared_fs_path(host_path, storage_path, container))


def _directory(container: str | None, *, container_path: str) -> StorageManager:
    if not posixpath.isabs(container_path):
        raise ValueError(f"checkpoint_storage.container_path must be absolute, not {container_path!r}")
    return SharedFSStorageManager(container_path)


def _gcs(
    container: str | None, *, bucket: str, prefix: str | None = None, temp_dir: str | None = None
) -> StorageManager:
    return GCSStorageManager(bucket, prefix, temp_dir)


def _azure(
    outer: str | None,
    *,
    container: str,
    connection_string: str | None = None,
    account_url: str | None = None,
    credential: str | None = None,
    temp_dir: str | None = None,
) -> StorageManager:
    return AzureStorageManager(container, connection_string, account_url, credential, temp_dir)


def _s3(
    container: str | None,
    *,
    bucket: str,
    access_key: str | None = None,
    secret_key: str | None = None,
    endpoint_url: str | None = None,
    prefix: str | None = None,
    temp_dir: str | None = None,
) -> StorageManager:
    return S3StorageManager(bucket, access_key, secret_key, endpoint_url, prefix, temp_dir)


_BUILDERS: dict[str, Callable[..., StorageManager]] = {
    "shared_fs": _shared_fs,
    "directory": _directory,
    "s3": _s3,
    "gcs": _gcs,
    "azure": _azure,
}


def build(config: Mapping[str, Any], container_path: str | None = None) -> StorageManager:
    """Return the storage described by the `checkpoint_storage` section of a configuration.

    ValueError for a missing or non-string type and for impossible paths, TypeError for an unknown
    type, for wrong keys, or for what is no mapping. `save_*` keys concern retention and are dropped.
    """
    if not isinstance(config, Mapping):
        raise TypeError(
            f"a storage configuration must be a dict with a 'type', not {type(config).__name__}: "
            "from_string() takes a path or a URL"
        )
    if config.get("type") is None:
        raise ValueError("Missing 'type' parameter of storage configuration")
    kind = config["type"]
    if not isinstance(kind, str):
        raise ValueError(f"`type` of a storage configuration must be a string, not {type(kind).__name__}")
    if kind not in _BUILDERS:
        raise TypeError(f"Unknown storage type: {kind}")
    # A section of an experiment's configuration also says how many checkpoints are kept.
    options = {k: v for k, v in config.items() if k != "type" and not k.startswith("save_")}
    try:
        return _BUILDERS[kind](container_path, **options)
    # The signature of a builder is the list of keys that its type allows.
    except TypeError as e:
        raise TypeError(f"wrong keys in a storage configuration of type {kind}: {e}") from e


def from_string(shortcut: str) -> StorageManager:
    """Return the storage of a path, `file://`, `s3://bucket[/prefix]` or `gs://bucket[/prefix]` URL.

    Raises ValueError for others, and TypeError for what is no text.
    """
    if not isinstance(shortcut, str):
        raise TypeError(f"a storage must be a str, a path or a URL, not {type(shortcut).__name__}")
    url = urlparse(shortcut)
    if url.params or url.query or url.fragment:
        raise ValueError(f"malformed storage {shortcut!r}: a path or URL without ;, ? and # is needed")
    if url.scheme in ("", "file"):
        if url.netloc:
            raise ValueError(f"malformed storage {shortcut!r}: file:///absolute/path takes no host name")
        # In a URL `%20` is a blank, in a plain path it is a part of the name.
        path = unquote(url.path) if url.scheme else url.path
        if not path:
            raise ValueError("malformed storage: the path is empty")
        # Absolute now, because the script may change its directory later.
        return SharedFSStorageManager(os.path.abspath(path))
    if url.scheme == "s3":
        return S3StorageManager(url.netloc, prefix=url.path)
    if url.scheme == "gs":
        return GCSStorageManager(url.netloc, prefix=url.path)
    raise ValueError(
        f"unknown scheme {url.scheme!r} of storage {shortcut!r}; use a path, file://, s3:// or gs://"
    )


def validate_manager(manager: StorageManager) -> None:
    """Write, read and delete a small file. An exception says what the storage refuses."""
    storage_id, name, text = str(uuid.uuid4()), "validation", "can be written and read"
    with tempfile.TemporaryDirectory() as scratch:
        sent, back = pathlib.Path(scratch, "sent"), pathlib.Path(scratch, "back")
        sent.mkdir()
        (sent / name).write_text(text)
        try:
            manager.upload(sent, storage_id)
            manager.download(storage_id, back)
            if (back / name).read_text() != text:
                raise OSError(f"{manager!r} returned different data than was written")
        finally:
            # A user may be allowed to write but not to delete, which is enough for training.
            manager.delete_quietly(storage_id)


def validate_config(config: Mapping[str, Any], container_path: str | None = None) -> None:
    """Build the storage of a configuration and check it like `validate_manager`."""
    validate_manager(build(config, container_path))

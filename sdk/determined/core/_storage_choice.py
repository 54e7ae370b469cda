"""Chooses the checkpoint storage of a script (core API spec, section 4)."""

import logging
import os
import pathlib
import sys
from typing import Any

from determined import storage
from determined._home import home_directory
from determined._info import ClusterInfo
from determined.storage import StorageManager

logger = logging.getLogger("determined.core")

_IN_CONTAINER = "/determined_shared_fs"
_WITH_CONTAINER = ("docker-container", "k8s-pod")


def user_data_directory() -> pathlib.Path:
    """Return the directory for this user's application data, with `determined` appended.

    Raises `NoHomeDirectory`.
    """
    if sys.platform == "darwin":
        return home_directory() / "Library" / "Application Support" / "determined"
    base = os.environ.get("XDG_DATA_HOME")
    return (pathlib.Path(base) if base else home_directory() / ".local" / "share") / "determined"


def chosen_storage(checkpoint_storage: str | dict[str, Any] | None) -> StorageManager:
    """Return the storage for `core.init(checkpoint_storage=...)`. None means the user's data directory."""
    if checkpoint_storage is None:
        directory = user_data_directory()
        logger.info("no checkpoint_storage was given; checkpoints go to %s", directory)
        return storage.SharedFSStorageManager(directory)
    if isinstance(checkpoint_storage, str):
        return storage.from_string(checkpoint_storage)
    if not isinstance(checkpoint_storage, dict):
        raise TypeError(
            f"checkpoint_storage must be a str, a dict or None, not {type(checkpoint_storage).__name__}"
        )
    if checkpoint_storage.get("type") == "shared_fs":
        raise ValueError(
            "checkpoint_storage of type shared_fs cannot be given as a dict: it may only be mounted by the "
            "cluster. Use a string or a configuration file"
        )
    return storage.build(checkpoint_storage)


def trial_storage(info: ClusterInfo, checkpoint_storage: str | dict[str, Any] | None) -> StorageManager:
    """Return the storage given by the script, or else the experiment's."""
    if checkpoint_storage is not None:
        return chosen_storage(checkpoint_storage)
    # In a container, the directory of the host is mounted where Determined 0.25 has it.
    mounted = os.environ.get("DET_RESOURCES_TYPE") in _WITH_CONTAINER
    return storage.build(info.trial._config["checkpoint_storage"], _IN_CONTAINER if mounted else None)

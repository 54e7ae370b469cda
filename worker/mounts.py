"""Mounts a run's files where Determined's containers have them, in a mount namespace of its own.

Determined's own SDK looks only there. Linux only; needs `unshare` and `mount` from util-linux, and either
root to create the mount points or the two directories to exist.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from worker.account import Account, file_access_as

INFO = Path("/run/determined/info")
SHARED_FS = Path("/determined_shared_fs")
_BIND = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit; shift 2; done; shift; exec "$@"'


class CannotMount(OSError):
    """A mount point is missing and cannot be created; the text says which."""


def wrap_with_mounts(
    argv: Sequence[str], info_dir: Path, storage: Mapping[str, Any], *, make: bool = True
) -> list[str]:
    """The command line that runs `argv` with these mounts. For the rest see `prepare_binds`."""
    binds = prepare_binds(info_dir, storage, make=make)
    unshare = ["unshare", "--mount"] + (["--user", "--map-root-user"] if os.geteuid() else [])
    bind_paths = [str(path) for pair in binds for path in pair]
    return [*unshare, "sh", "-c", _BIND, "sh", *bind_paths, "--", *argv]


def prepare_binds(
    info_dir: Path, storage: Mapping[str, Any], account: Account | None = None, *, make: bool = True
) -> list[tuple[Path, Path]]:
    """Each folder and its path in a container. Both are created with the rights of their user.

    `make`: whether the storage directory may be created. Raises `CannotMount`.
    """
    binds = [(info_dir, INFO)]
    if storage.get("type") == "shared_fs":
        binds.append((Path(storage["host_path"]), SHARED_FS))
    for source, target in binds:
        with file_access_as(account):
            if make or source == info_dir:
                _make_directory(source)
        _make_directory(target)
    return binds


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotMount(
            f"{path} cannot be made ({error.strerror}); make it by hand, or set "
            "STEADFAST_WORKER_CONTAINER_PATHS=false"
        ) from error

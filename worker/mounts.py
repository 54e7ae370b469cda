"""Shows a run its files where Determined's containers have them, in a mount namespace of its own.

Determined's own SDK looks there and nowhere else. Linux only; needs `unshare` and `mount` of util-linux, and
the right to make mount points: the worker runs as root, or somebody made the two directories.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from worker.account import Account, files_as

INFO = Path("/run/determined/info")
SHARED_FS = Path("/determined_shared_fs")
_BIND = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit; shift 2; done; shift; exec "$@"'


class CannotMount(OSError):
    """A mount point is missing and cannot be made; the text says which."""


def with_container_paths(
    argv: Sequence[str], info_dir: Path, storage: Mapping[str, Any], *, make: bool = True
) -> list[str]:
    """The command line that runs `argv` with these mounts; for the rest see `container_paths`."""
    binds = container_paths(info_dir, storage, make=make)
    alone = ["unshare", "--mount"] + (["--user", "--map-root-user"] if os.geteuid() else [])
    places = [str(path) for pair in binds for path in pair]
    return [*alone, "sh", "-c", _BIND, "sh", *places, "--", *argv]


def container_paths(
    info_dir: Path, storage: Mapping[str, Any], account: Account | None = None, *, make: bool = True
) -> list[tuple[Path, Path]]:
    """Each folder, and where a container has it, both made with the rights of who will use them.

    `make`: whether the directory of the storage may be made. Raises `CannotMount`.
    """
    binds = [(info_dir, INFO)]
    if storage.get("type") == "shared_fs":
        binds.append((Path(storage["host_path"]), SHARED_FS))
    for source, target in binds:
        with files_as(account):
            if make or source == info_dir:
                _make(source)
        _make(target)
    return binds


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotMount(
            f"{path} cannot be made ({error.strerror}); make it by hand, or set "
            "STEADFAST_WORKER_CONTAINER_PATHS=false"
        ) from error

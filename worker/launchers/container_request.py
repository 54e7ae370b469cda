"""What a configuration requests of containers, and what of it this worker permits."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from det_contracts.events.worker import Slot
from det_contracts.expconf.environment import DEFAULT_IMAGES
from det_contracts.expconf.resources import size_bytes
from det_contracts.expconf.scalars import BadForm
from det_contracts.roots import contains_path, split_paths
from worker.account import Account, file_access_as
from worker.launchers.engine import Mount, Refused, Registry
from worker.settings import WorkerSettings

IMAGE = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._/:@+-]*")
"""No image name may be mistaken for an option of the engine."""
CAPABILITY = re.compile(r"[A-Z_]+")
PROPAGATIONS = ("", "private", "rprivate", "shared", "rshared", "slave", "rslave")
SHM_BYTES = 4 << 30
"""The default of 0.25 for configurations that set none. Data loaders fail with Docker's own 64 MiB."""
PLATFORM_TASKS = ("CHECKPOINT_GC", "TENSORBOARD")
"""Tasks that run the platform's programs. They are always plain processes with the worker's interpreter."""
SHARED_FS = "/determined_shared_fs"


@dataclass(frozen=True)
class ContainerRequest:
    """What a task's configuration says about its container."""

    image: str
    """Empty if it names none."""
    force_pull: bool
    registry: Registry | None
    mounts: tuple[Mount, ...]
    shm_bytes: int
    ports: tuple[int, ...]
    add_capabilities: tuple[str, ...]
    drop_capabilities: tuple[str, ...]
    devices: bool


def read_request(config: Mapping[str, Any], slots: Sequence[Slot], workdir: str) -> ContainerRequest:
    """Read a configuration with its secrets decrypted. `slots` determine the kind of device.

    Raises `Refused` for an invalid configuration; those of commands have not been checked before.

    Example: `asked({"environment": {"image": {"cpu": "debian:12"}}}, slots, "/cwd").image` is `debian:12`.
    """
    try:
        return _read_request(config, slots, workdir)
    except (BadForm, AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(
            f"environment, resources or bind_mounts of the configuration cannot be read: {error}"
        ) from None


def _read_request(config: Mapping[str, Any], slots: Sequence[Slot], workdir: str) -> ContainerRequest:
    environment, resources = config.get("environment") or {}, config.get("resources") or {}
    registry = environment.get("registry_auth")
    return ContainerRequest(
        image=image_of(environment.get("image"), slots),
        force_pull=bool(environment.get("force_pull_image")),
        registry=None if registry is None else msgspec.convert(_without_nulls(registry), Registry),
        mounts=tuple(_mount(entry, workdir) for entry in config.get("bind_mounts") or ()),
        shm_bytes=int(size_bytes(resources.get("shm_size") or SHM_BYTES)),
        ports=tuple(int(port) for port in (environment.get("ports") or {}).values()),
        add_capabilities=tuple(environment.get("add_capabilities") or ()),
        drop_capabilities=tuple(environment.get("drop_capabilities") or ()),
        devices=bool(resources.get("devices")),
    )


def image_of(images: Any, slots: Sequence[Slot]) -> str:
    """The image named for the kind of slots at hand; "" for the default one."""
    kind = "cuda" if any(slot.kind == "cuda" for slot in slots) else "cpu"
    named = images if isinstance(images, str) else (images or {}).get(kind) or ""
    return "" if named in DEFAULT_IMAGES.values() else str(named)


def describe_unused(config: Mapping[str, Any], slots: Sequence[Slot], workdir: str) -> list[str]:
    """What a worker that starts plain processes ignores in a configuration, in words for the user.

    The worker starts the task in any case, even if the request cannot be read.
    """
    try:
        request = read_request(config, slots, workdir)
    except Refused as error:
        return [str(error)]
    unused = []
    if request.image:
        unused.append(
            f"environment.image {request.image} is not used: this worker starts tasks as plain processes, "
            "with the Python of its host. The worker's operator may set STEADFAST_WORKER_LAUNCHER"
        )
    unused += [
        f"bind_mounts: {mount.source} is not mounted at {mount.target}, as the task is a plain process: it "
        f"finds the folder at {mount.source}"
        for mount in request.mounts
        if mount.source != mount.target
    ]
    return unused


def check_image(image: str) -> str:
    """Return the name of an image if it is valid. Raises `Refused`."""
    if not IMAGE.fullmatch(image):
        raise Refused(f"environment.image: {image!r} is not a valid image name")
    return image


def check_capabilities(request: ContainerRequest, settings: WorkerSettings) -> None:
    """Raise `Refused` for capabilities that the operator has not allowed."""
    allowed = settings.worker_capabilities.upper().replace(",", " ").split()
    for name in request.add_capabilities:
        if name.upper() not in allowed:
            raise Refused(
                f"environment.add_capabilities: this worker does not give {name} to tasks. Remove it from "
                "the configuration, or ask the worker's operator to add it to STEADFAST_WORKER_CAPABILITIES"
            )
    for name in request.drop_capabilities:
        if not CAPABILITY.fullmatch(name):
            raise Refused(f"environment.drop_capabilities: {name!r} is not a valid capability name")


def check_mount(mount: Mount, settings: WorkerSettings, account: Account | None) -> Mount:
    """Return a mount with its source resolved, if the operator lets tasks mount it. Raises `Refused`.

    An engine mounts as root, even below folders that are closed to the task's user. So that user must be able
    to reach the source without a container, too.
    """
    roots = [os.path.realpath(root) for root in split_paths(settings.worker_mount_roots)]
    source = os.path.realpath(mount.source)
    if mount.propagation not in PROPAGATIONS:
        raise Refused(
            f"bind_mounts: propagation must be one of {', '.join(PROPAGATIONS[1:])}, not "
            f"{mount.propagation!r}"
        )
    if not any(contains_path(root, source) for root in roots):
        raise Refused(
            f"bind_mounts: {mount.source} is outside of what tasks of this worker may mount "
            f"({', '.join(roots) or 'nothing'}). The worker's operator may add its folder to "
            "STEADFAST_WORKER_MOUNT_ROOTS"
        )
    try:
        with file_access_as(account):
            os.stat(source)
    except OSError as error:
        whose = f" as {account}" if account is not None else ""
        raise Refused(f"bind_mounts: {mount.source} cannot be reached{whose}: {error.strerror}") from None
    return msgspec.structs.replace(mount, source=source)


def storage_mounts(storage: Mapping[str, Any] | None) -> list[Mount]:
    """Mounts for the checkpoint storage: at its path on the host, and where 0.25 had it in containers.

    The caller has already tried this storage as the task's user.
    """
    kind, folder = (storage or {}).get("type"), ""
    if storage is not None and kind in ("shared_fs", "directory"):
        folder = str(storage["host_path" if kind == "shared_fs" else "container_path"])
    source = os.path.realpath(folder)
    targets = {"shared_fs": (folder, SHARED_FS), "directory": (folder,)}.get(str(kind), ())
    return [Mount(source, target) for target in targets]


def run_mounts(home: Path, info_dir: Path, workdir: Path) -> list[Mount]:
    """Mounts for the run's folders: at their paths on the host, and where 0.25 had them in containers."""
    own = [Mount(str(path), str(path)) for path in (workdir, info_dir, home / "model") if path.exists()]
    return [
        *own,
        Mount(str(info_dir), "/run/determined/info"),
        Mount(str(workdir), "/run/determined/workdir"),
    ]


def operator_options(settings: WorkerSettings) -> tuple[str, ...]:
    """The operator's additional options for the engine, split as a shell would. Raises `ValueError`."""
    return tuple(shlex.split(settings.worker_container_options))


def _mount(entry: Mapping[str, Any], workdir: str) -> Mount:
    # A relative path is relative to the working directory, as in 0.25.
    target = posixpath.normpath(posixpath.join(workdir, entry["container_path"]))
    propagation = entry.get("propagation") or ""
    return Mount(entry["host_path"], target, bool(entry.get("read_only")), propagation)


def _without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}

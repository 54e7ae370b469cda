"""The interface of container engines, independent of any engine's syntax."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

_CLI_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
_CLI_PREFIXES = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "PODMAN_", "APPTAINER_", "SINGULARITY_")


class Refused(Exception):
    """A task requests something that this worker does not permit for containers; the text says what to do."""


class Mount(msgspec.Struct, frozen=True):
    """A file or folder of the host, and its path in the container."""

    source: str
    target: str
    read_only: bool = False
    propagation: str = ""
    """As in `bind_mounts` of a configuration; empty for the engine's default."""


class Registry(msgspec.Struct, frozen=True):
    """Credentials of an image registry. They are secret, so no command line may contain them."""

    username: str = ""
    password: str = ""
    email: str = ""
    serveraddress: str = ""
    auth: str = ""
    identitytoken: str = ""
    registrytoken: str = ""


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """One container of one run."""

    name: str
    """Unique on the host."""
    labels: Mapping[str, str]
    image: str
    argv: tuple[str, ...]
    """In the container. The image's own entrypoint is not used."""
    workdir: str
    mounts: tuple[Mount, ...]
    uid: int
    gid: int
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs that it may use."""
    shm_bytes: int
    ports: tuple[int, ...] = ()
    """Ports that others must reach. With the host's network they are open anyway."""
    network: str = "host"
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """The operator's additional options for the engine."""
    id_file: str
    """Where the engine writes the container's id, if it does."""
    force_pull: bool = False
    registry: Registry | None = None


class Engine(Protocol):
    """A program that runs containers, used through its command line."""

    name: str
    as_task_user: bool
    """Whether the program itself runs as the task's user.

    Otherwise it runs as the worker's user, and the task's user is passed to it.
    """
    hides_gpus: bool
    """Whether a container has no other GPUs than those of its task, which it then counts from 0."""

    def command(self, container: Container) -> list[str]:
        """The command line that runs a container in the foreground and exits with its exit code."""
        ...

    def end_command(self, name: str) -> list[str]:
        """The command that ends and removes a container in any state; empty if it ends with `command`."""
        ...

    def inspect_command(self, image: str) -> list[str]:
        """The command that succeeds if an image is present; empty if `command` fetches images itself."""
        ...

    def pull_command(self, image: str, credentials: Path | None) -> list[str]:
        """The command that fetches an image.

        `credentials` is a folder with a `config.json` for registries.
        """
        ...

    def list_command(self, label: str) -> list[str]:
        """The command that prints all containers with a label, one name per line; empty if impossible."""
        ...

    def secrets(self, container: Container) -> dict[str, str]:
        """Environment variables for the command itself, in addition to `cli_environment`."""
        ...

    def unsupported_requests(self, container: Container) -> list[str]:
        """Requests of a container that the engine cannot fulfil, in words for the user."""
        ...


def cli_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment for an engine's program: only the operator's variables, none that a user may choose.

    The program has the worker's rights, so a user's `LD_PRELOAD` or `DOCKER_HOST` must never reach it.
    """
    passed = {
        name: value
        for name, value in inherited.items()
        if name in _CLI_VARIABLES or name.startswith(_CLI_PREFIXES)
    }
    return {"PATH": os.defpath, **passed}

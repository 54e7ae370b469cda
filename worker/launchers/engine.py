"""What every container engine is asked for, in no engine's words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

_CLI_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
_CLI_PREFIXES = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "PODMAN_", "APPTAINER_", "SINGULARITY_")


class Refused(Exception):
    """A task asks for what this worker does not give to containers; the text says what to do."""


class Mount(msgspec.Struct, frozen=True):
    """A folder or file of the host, and where the container has it."""

    source: str
    target: str
    read_only: bool = False
    propagation: str = ""
    """As `bind_mounts` of a configuration says it; empty for the engine's own."""


class Registry(msgspec.Struct, frozen=True):
    """Credentials of an image registry: secrets, that no command line may hold."""

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
    """No other container of the host has it."""
    labels: Mapping[str, str]
    image: str
    argv: tuple[str, ...]
    """In the container; the image's own entrypoint is not used."""
    workdir: str
    mounts: tuple[Mount, ...]
    uid: int
    gid: int
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs that it may use."""
    shm_bytes: int
    ports: tuple[int, ...] = ()
    """That others must reach; where it has the host's network they are open anyway."""
    network: str = "host"
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """The operator's own words for the engine."""
    id_file: str
    """Where the engine writes the container's id, where it does."""
    force_pull: bool = False
    registry: Registry | None = None


class Engine(Protocol):
    """A program that runs containers, by its command line."""

    name: str
    as_task_user: bool
    """Whether the program itself runs as the task's user. Otherwise it runs as the worker's own, and is told
    the user."""

    def command(self, container: Container) -> list[str]:
        """The command line that runs a container in the foreground and ends with its exit code."""
        ...

    def end_command(self, name: str) -> list[str]:
        """What ends a container and removes it, whatever its state; empty where it ends with the command."""
        ...

    def look_command(self, image: str) -> list[str]:
        """What succeeds where an image is here; empty where images are fetched by the command itself."""
        ...

    def pull_command(self, image: str, credentials: Path | None) -> list[str]:
        """What fetches an image; `credentials` is a folder with a `config.json` for registries."""
        ...

    def list_command(self, label: str) -> list[str]:
        """What prints the names of all containers with a label, a line each; empty where that cannot be."""
        ...

    def secrets(self, container: Container) -> dict[str, str]:
        """Variables of the command itself, beside those of `cli_environment`."""
        ...

    def unmet(self, container: Container) -> list[str]:
        """What the engine cannot do of what a container asks for, in words for the user."""
        ...


def cli_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of an engine's program: the operator's, and nothing that a user may choose.

    The program has the rights of the worker: a user's `LD_PRELOAD` or `DOCKER_HOST` must never reach it.
    """
    passed = {
        name: value
        for name, value in inherited.items()
        if name in _CLI_VARIABLES or name.startswith(_CLI_PREFIXES)
    }
    return {"PATH": os.defpath, **passed}

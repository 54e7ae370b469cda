"""Docker and Podman, which have nearly the same command line."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

from worker.launchers.engine import Container, Mount

ROOT = 0


class Docker:
    """`docker`: a daemon runs the container; access to it is as good as root on the host."""

    name = "docker"
    as_task_user = False
    hides_gpus = True

    def command(self, container: Container) -> list[str]:
        """The command line that runs a container in the foreground and exits with its exit code."""
        entry, *arguments = container.argv
        return [
            self.name,
            "run",
            "--rm",
            *("--name", container.name),
            *(word for item in container.labels.items() for word in ("--label", "=".join(item))),
            *("--cidfile", container.id_file),
            # The image was pulled before, where a failure does not count as the run's. The shim's spool has
            # the output.
            "--pull=never",
            "--log-driver=none",
            *("--user", f"{container.uid}:{container.gid}"),
            *self._rights(container),
            *("--workdir", container.workdir),
            *("--shm-size", str(container.shm_bytes)),
            *self._network(container),
            *self._gpus(container.gpus),
            *(word for mount in container.mounts for word in ("--mount", _mount(mount))),
            *container.options,
            *("--entrypoint", entry),
            container.image,
            *arguments,
        ]

    def end_command(self, name: str) -> list[str]:
        """The command that ends and removes a container in any state."""
        return [self.name, "rm", "--force", name]

    def inspect_command(self, image: str) -> list[str]:
        """The command that succeeds if an image is present."""
        return [self.name, "image", "inspect", image]

    def pull_command(self, image: str, credentials: Path | None) -> list[str]:
        """The command that fetches an image."""
        config = [] if credentials is None else ["--config", str(credentials)]
        return [self.name, *config, "pull", "--quiet", image]

    def list_command(self, label: str) -> list[str]:
        """The command that prints the names of all containers with a label."""
        return [self.name, "ps", "--all", "--filter", f"label={label}", "--format", "{{.Names}}"]

    def secrets(self, container: Container) -> dict[str, str]:
        """Empty: registries are only accessed before the run."""
        return {}

    def unsupported_requests(self, container: Container) -> list[str]:
        """Empty: this engine can do everything that can be requested."""
        return []

    def _rights(self, container: Container) -> list[str]:
        added = [f"--cap-add={name}" for name in container.add_capabilities]
        dropped = [f"--cap-drop={name}" for name in container.drop_capabilities]
        # As without a container: set-user-id programs give a user no additional rights.
        fixed = ["--security-opt=no-new-privileges"] if container.uid != ROOT and not added else []
        return [*fixed, *added, *dropped]

    def _network(self, container: Container) -> list[str]:
        published = [] if container.network == "host" else container.ports
        return [f"--network={container.network}", *(f"--publish={port}:{port}" for port in published)]

    def _gpus(self, uuids: tuple[str, ...]) -> list[str]:
        # Quoted, because the value is parsed as comma-separated fields.
        return ["--gpus", '"device=' + ",".join(uuids) + '"'] if uuids else []


class Podman(Docker):
    """`podman`: no daemon; without root it runs in the worker's own user namespace."""

    name = "podman"

    def end_command(self, name: str) -> list[str]:
        """The command that ends a container at once and removes it, in any state."""
        return [self.name, "rm", "--force", "--ignore", "--time=0", name]

    def pull_command(self, image: str, credentials: Path | None) -> list[str]:
        """The command that fetches an image."""
        file = [] if credentials is None else ["--authfile", str(credentials / "config.json")]
        return [self.name, "pull", "--quiet", *file, image]

    def _rights(self, container: Container) -> list[str]:
        # Without root, files of the worker's user belong to that user inside the container, too.
        own = [] if os.geteuid() == ROOT else ["--userns=keep-id"]
        return [*own, *super()._rights(container)]

    def _gpus(self, uuids: tuple[str, ...]) -> list[str]:
        return [f"--device=nvidia.com/gpu={uuid}" for uuid in uuids]


def _mount(mount: Mount) -> str:
    """The value of `--mount`: comma-separated fields, quoted if a path contains a comma."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    if mount.read_only:
        fields.append("readonly")
    if mount.propagation:
        fields.append(f"bind-propagation={mount.propagation}")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()

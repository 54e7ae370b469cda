"""Docker and Podman: nearly the same words."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

from worker.launchers.engine import Container, Mount

ROOT = 0


class Docker:
    """`docker`: a daemon runs the container, and who may ask it is as good as root on the host."""

    name = "docker"
    as_task_user = False

    def command(self, container: Container) -> list[str]:
        """The command line that runs a container in the foreground and ends with its exit code."""
        entry, *arguments = container.argv
        return [
            self.name,
            "run",
            "--rm",
            *("--name", container.name),
            *(word for item in container.labels.items() for word in ("--label", "=".join(item))),
            *("--cidfile", container.id_file),
            # Pulled before, where a failure is no failure of the run. What it prints is in the shim's spool.
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
        """What ends a container and removes it, whatever its state."""
        return [self.name, "rm", "--force", name]

    def look_command(self, image: str) -> list[str]:
        """What succeeds where an image is here."""
        return [self.name, "image", "inspect", image]

    def pull_command(self, image: str, credentials: Path | None) -> list[str]:
        """What fetches an image."""
        config = [] if credentials is None else ["--config", str(credentials)]
        return [self.name, *config, "pull", "--quiet", image]

    def list_command(self, label: str) -> list[str]:
        """What prints the names of all containers with a label."""
        return [self.name, "ps", "--all", "--filter", f"label={label}", "--format", "{{.Names}}"]

    def secrets(self, container: Container) -> dict[str, str]:
        """None: registries are asked before the run."""
        return {}

    def unmet(self, container: Container) -> list[str]:
        """Nothing that this engine cannot do."""
        return []

    def _rights(self, container: Container) -> list[str]:
        added = [f"--cap-add={name}" for name in container.add_capabilities]
        dropped = [f"--cap-drop={name}" for name in container.drop_capabilities]
        # As without a container: no program with a set-user-id bit makes a user more than it is.
        fixed = ["--security-opt=no-new-privileges"] if container.uid != ROOT and not added else []
        return [*fixed, *added, *dropped]

    def _network(self, container: Container) -> list[str]:
        published = [] if container.network == "host" else container.ports
        return [f"--network={container.network}", *(f"--publish={port}:{port}" for port in published)]

    def _gpus(self, uuids: tuple[str, ...]) -> list[str]:
        # Quoted, as the value is read as comma-separated fields.
        return ["--gpus", '"device=' + ",".join(uuids) + '"'] if uuids else []


class Podman(Docker):
    """`podman`: no daemon; without root it runs in the worker's own user namespace."""

    name = "podman"

    def end_command(self, name: str) -> list[str]:
        """What ends a container at once and removes it, whatever its state."""
        return [self.name, "rm", "--force", "--ignore", "--time=0", name]

    def pull_command(self, image: str, credentials: Path | None) -> list[str]:
        """What fetches an image."""
        file = [] if credentials is None else ["--authfile", str(credentials / "config.json")]
        return [self.name, "pull", "--quiet", *file, image]

    def _rights(self, container: Container) -> list[str]:
        # Without root, files of the worker's user are that user's inside, too.
        own = [] if os.geteuid() == ROOT else ["--userns=keep-id"]
        return [*own, *super()._rights(container)]

    def _gpus(self, uuids: tuple[str, ...]) -> list[str]:
        return [f"--device=nvidia.com/gpu={uuid}" for uuid in uuids]


def _mount(mount: Mount) -> str:
    """The value of `--mount`: comma-separated fields, quoted where a path has a comma."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    if mount.read_only:
        fields.append("readonly")
    if mount.propagation:
        fields.append(f"bind-propagation={mount.propagation}")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()

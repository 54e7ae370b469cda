"""Apptainer: containers as ordinary user processes, common on clusters without Docker."""

from __future__ import annotations

from pathlib import Path

from worker.launchers.engine import Container, Mount, Refused

ON_DISK = (".sif", "/")


class Apptainer:
    """`apptainer`: no daemon, no root. A container's processes are below the shim, like any others."""

    name = "apptainer"
    as_task_user = True
    hides_gpus = False

    def command(self, container: Container) -> list[str]:
        """The command line that runs a container in the foreground and exits with its exit code."""
        return [
            self.name,
            "exec",
            # Do not pass on the user's variables, home directory or /tmp.
            "--cleanenv",
            "--contain",
            "--no-home",
            "--writable-tmpfs",
            *(["--nv"] if container.gpus else []),
            *(["--disable-cache"] if container.force_pull else []),
            *(f"--add-caps={name}" for name in container.add_capabilities),
            *(f"--drop-caps={name}" for name in container.drop_capabilities),
            *("--pwd", container.workdir),
            *(word for mount in container.mounts for word in ("--bind", _bind(mount))),
            *container.options,
            reference(container.image),
            *container.argv,
        ]

    def end_command(self, name: str) -> list[str]:
        """Empty: the shim ends the processes below it."""
        return []

    def inspect_command(self, image: str) -> list[str]:
        """Empty: the run command itself fetches images, into the user's cache."""
        return []

    def pull_command(self, image: str, credentials: Path | None) -> list[str]:
        """Empty: the run command itself fetches images."""
        return []

    def list_command(self, label: str) -> list[str]:
        """Empty: there are no containers besides the processes."""
        return []

    def secrets(self, container: Container) -> dict[str, str]:
        """The registry's credentials, which Apptainer only takes from its environment."""
        registry = container.registry
        if registry is None:
            return {}
        secrets = {"USERNAME": registry.username, "PASSWORD": registry.password}
        return {f"APPTAINER_DOCKER_{name}": value for name, value in secrets.items() if value}

    def unsupported_requests(self, container: Container) -> list[str]:
        """Reports that containers share the host's network, and which credentials are not used."""
        problems = []
        if container.network != "host":
            problems.append("apptainer has no container networks: the task uses its host's network")
        if container.registry is not None and not container.registry.username:
            problems.append("apptainer uses only `username` and `password` of environment.registry_auth")
        return problems


def reference(image: str) -> str:
    """An image in Apptainer's syntax: a file unchanged, any other name as a Docker image.

    Example: `reference("pytorch/pytorch")` is `docker://pytorch/pytorch`.
    """
    is_file = image.startswith(ON_DISK[1]) or image.endswith(ON_DISK[0])
    return image if is_file or "://" in image else f"docker://{image}"


def _bind(mount: Mount) -> str:
    for path in (mount.source, mount.target):
        if ":" in path or "," in path:
            raise Refused(f"apptainer cannot mount '{path}': a path must not contain ':' or ','")
    return f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")

"""Prepares the containers of one worker's tasks for the shim, and removes what is left of them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog

from det_contracts.expconf.environment import DEFAULT_IMAGES
from det_contracts.roots import Roots
from services.kit.allowed_paths import is_within
from services.kit.files import write_atomic
from worker import process
from worker.account import Account, max_processes
from worker.environment import PORTS
from worker.launchers import BadLauncher, container_request, engine_named, variables_file
from worker.launchers.engine import Container, Engine, Mount, Refused, Registry, cli_environment
from worker.ports import Ports
from worker.settings import WorkerSettings

IMAGE_FILE = "container.json"
ID_FILE = "container.id"
LABEL = "steadfast.instance"
COMMAND_TIMEOUT_S = 60.0

log = structlog.get_logger()


class Image(msgspec.Struct, frozen=True):
    """An image that must be present before a run starts.

    Kept in the run's folder, in case its worker is killed.
    """

    name: str
    force_pull: bool = False
    registry: Registry | None = None


class ShimCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What the shim is to run."""

    argv: list[str]
    env: dict[str, str]
    end: process.End | None
    run_as: process.RunAs | None
    notices: list[str]
    """Requests that the container does not get, in words for the user."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is ready except for its container."""

    allocation_id: str
    argv: Sequence[str]
    variables: Mapping[str, str]
    workdir: Path
    info_dir: Path
    account: Account | None
    ports: Ports
    storage: Mapping[str, Any] | None
    gpus: tuple[str, ...]


class Containers:
    """The containers of one worker."""

    def __init__(self, engine: Engine, settings: WorkerSettings, instance: str, roots: Roots) -> None:
        """`instance` distinguishes this worker's containers from those of others on the host."""
        self._engine = engine
        self._settings = settings
        self._instance = instance
        self._roots = roots
        self._engine_options = container_request.operator_options(settings)
        self.hides_gpus = engine.hides_gpus
        self.is_child = engine.as_task_user
        """Whether what runs in a container descends from the program that its shim starts."""

    def prepare_container(
        self, run_dir: Path, task: Task, request: container_request.ContainerRequest
    ) -> ShimCommand:
        """Write down what a run needs for its container. Raises `Refused`, or `OSError` from the disk."""
        account = task.account if self._engine.as_task_user else None
        if why := _unknown_account(account):
            raise Refused(f"{self._engine.name} cannot start the task: {why}")
        unset = variables_file.write_variables(task.info_dir, task.variables)
        container = self._container(run_dir, task, request)
        image = Image(container.image, request.force_pull, request.registry)
        if self._engine.inspect_command(container.image):
            write_atomic(run_dir / IMAGE_FILE, msgspec.json.encode(image), durable=False)
        environment = cli_environment(os.environ)
        # These identify a run on the host, whatever started it.
        ports_by_name = dict(zip(PORTS, map(str, task.ports.all()), strict=True))
        ports_by_name[process.INFO_DIR] = str(task.info_dir)
        ending = self._engine.end_command(container.name)
        most = max_processes(self._settings.worker_processes)
        return ShimCommand(
            argv=self._engine.command(container),
            env={**environment, **ports_by_name, **_home(account, task), **self._engine.secrets(container)},
            end=process.End(tuple(ending), environment) if ending else None,
            run_as=None if account is None else process.RunAs(account.uid, account.gid, max_processes=most),
            notices=[
                *_unset_notices(unset),
                *_device_notices(request),
                *self._engine.unsupported_requests(container),
            ],
        )

    def _container(self, run_dir: Path, task: Task, request: container_request.ContainerRequest) -> Container:
        settings, account = self._settings, task.account
        container_request.check_capabilities(request, settings)
        return Container(
            name=self.name_of(task.allocation_id),
            labels={LABEL: self._instance, "steadfast.allocation": task.allocation_id},
            image=container_request.check_image(request.image or self._default_image(task)),
            argv=variables_file.add_variables(task.argv, task.info_dir),
            workdir=str(task.workdir),
            mounts=tuple(self._mounts(task, request)),
            uid=os.geteuid() if account is None else account.uid,
            gid=os.getegid() if account is None else account.gid,
            gpus=task.gpus,
            shm_bytes=request.shm_bytes,
            ports=(*task.ports.all(), *request.ports),
            network=settings.worker_container_network,
            add_capabilities=request.add_capabilities,
            drop_capabilities=request.drop_capabilities,
            options=self._engine_options,
            id_file=str(run_dir / ID_FILE),
            force_pull=request.force_pull,
            registry=request.registry,
        )

    def name_of(self, allocation_id: str) -> str:
        """The name of a container on this host."""
        return f"steadfast-{allocation_id}-{self._instance[:12]}"

    def _default_image(self, task: Task) -> str:
        return self._settings.worker_image or DEFAULT_IMAGES["cuda" if task.gpus else "cpu"]

    def _mounts(self, task: Task, request: container_request.ContainerRequest) -> list[Mount]:
        def check(mount: Mount) -> Mount:
            return container_request.check_mount(mount, self._settings, task.account)

        storage = container_request.storage_mounts(task.storage)
        if task.storage is not None and storage and not is_within(task.storage, self._roots):
            # A `directory` storage outside all roots is inside the container: `bind_mounts` decide what is
            # behind it.
            storage = [] if task.storage["type"] == "directory" else [check(mount) for mount in storage]
        home = task.workdir.parent
        run_folders = container_request.run_mounts(home, task.info_dir, task.workdir)
        every = [*run_folders, *storage, *(check(mount) for mount in request.mounts)]
        # Only one mount per target, which engines require. The user's mounts come last and win.
        return list({mount.target: mount for mount in every}.values())

    def remove_all_except(self, allocations: Collection[str]) -> None:
        """End and remove this worker's containers that belong to no run any more. Blocks."""
        command = self._engine.list_command(f"{LABEL}={self._instance}")
        if not command:
            return
        keep = {self.name_of(id) for id in allocations}
        try:
            listed = _output(command)
            for name in set(listed.split()) - keep:
                log.warning("container.removed", name=name, reason="it belongs to no run of this worker")
                _output(self._engine.end_command(name))
        except (OSError, subprocess.SubprocessError) as error:
            log.error("containers.not_looked_through", launcher=self._engine.name, error=str(error))


def user_variables(account: Account | None, workdir: Path) -> dict[str, str]:
    """The environment of a task in a container, in place of the worker's: the user's name and a home.

    Images do not know these users, and libraries ask for the name of the user they run as.
    """
    if account is not None:
        name = account.name
    else:
        try:
            name = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            name = f"uid-{os.geteuid()}"
    return {"HOME": str(workdir), "USER": name, "LOGNAME": name}


def _home(account: Account | None, task: Task) -> dict[str, str]:
    """Where an engine that runs as the task's user keeps its own files, such as images."""
    return {} if account is None else {"HOME": account.home or str(task.workdir)}


def _unknown_account(account: Account | None) -> str:
    """Why an engine that runs as this account refuses it; "" if it does not.

    Apptainer looks the user up and starts nothing for one without an entry, whoever calls it.
    """
    if account is None:
        return ""
    try:
        pwd.getpwuid(account.uid)
    except KeyError:
        return f"it runs as {account}, and this host has no user with that id. Make one on the host (useradd)"
    return ""


def check_launcher(settings: WorkerSettings, default: Account | None = None) -> None:
    """Raise `BadLauncher` for settings with which no task could ever start.

    `default` is the account of tasks whose owner is not linked with one.
    """
    engine = engine_named(settings.worker_launcher)
    try:
        container_request.operator_options(settings)
    except ValueError as error:
        options = settings.worker_container_options
        raise BadLauncher(f"STEADFAST_WORKER_CONTAINER_OPTIONS='{options}': {error}") from None
    if engine is not None and shutil.which(engine.name) is None:
        raise BadLauncher(
            f"STEADFAST_WORKER_LAUNCHER={engine.name}: there is no program '{engine.name}' on PATH; install "
            "it, or leave the setting out to start tasks as plain processes"
        )
    if engine is not None and engine.as_task_user and (why := _unknown_account(default)):
        raise BadLauncher(
            f"STEADFAST_WORKER_LAUNCHER={engine.name} with STEADFAST_WORKER_RUN_AS={settings.worker_run_as}: "
            f"{why}"
        )


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=COMMAND_TIMEOUT_S,
        env=cli_environment(os.environ),
    )
    return done.stdout


def _unset_notices(names: Sequence[str]) -> list[str]:
    return [
        f"environment.environment_variables: {name!r} is not set, as the shell of a container "
        "cannot export that name"
        for name in names
    ]


def _device_notices(request: container_request.ContainerRequest) -> list[str]:
    if not request.devices:
        return []
    return ["resources.devices is not used: only the worker's operator gives devices to containers"]

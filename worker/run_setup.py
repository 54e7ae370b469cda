"""Prepares a run on this host: code, information files, credentials, command line."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from det_contracts import expconf, orders
from det_contracts.context import Context
from det_contracts.events.worker import Slot
from services.kit.allowed_paths import is_within, make_for_all, roots_of, storage_folder
from services.kit.blobs import BlobMissing, BlobStore
from services.kit.files import write_atomic
from services.kit.sealing import open_secrets, sealer_from
from services.kit.storage import StorageRefused, probe
from worker import hidden_values, ports, process, startup_hook
from worker.account import Account, Accounts, check_usable, file_access_as, max_processes
from worker.briefing import Briefing, Gang
from worker.contexts import ContextCache
from worker.control_groups import RunGroups, groups_of
from worker.environment import Placement, info_files, interpreter_dirs, variables, write_info
from worker.last_contact import FILE as CONTACT
from worker.launchers import Refused, engine_named, images
from worker.launchers.container_request import PLATFORM_TASKS, describe_unused, read_request
from worker.launchers.containers import Containers, user_variables
from worker.launchers.containers import Task as ContainerTask
from worker.mounts import prepare_binds, wrap_with_mounts
from worker.ports import Ports
from worker.run_limits import limits_of
from worker.settings import WorkerSettings
from worker.slots import visible_devices
from worker.task_files import TaskFiles
from worker.user_folders import UserFolders, chown_tree
from worker.warm.warm_start import ColdStart, WarmStart, is_switched_off, plan_start, rank_variables
from worker.work_dir import enter, work_dir_of, work_dir_variables
from worker.workdir import unpack


def tensorboard_folders(cluster_id: str) -> tuple[str, ...]:
    """The folders of a storage, one in the other, in which each experiment makes one for TensorBoard."""
    return cluster_id, "tensorboard", "experiment"


class CannotPrepare(Exception):
    """The run cannot be started on this host; the text is for the user."""


class Preparer:
    """Prepares runs. All methods block and may be repeated."""

    def __init__(
        self,
        settings: WorkerSettings,
        blobs: BlobStore,
        contexts: Path,
        instance: str = "",
        groups: RunGroups | None = None,
    ) -> None:
        self._settings = settings
        self._accounts = Accounts(settings.worker_run_as)
        self._user_folders = UserFolders(settings.worker_tasks, instance or settings.worker_id)
        self._contexts = ContextCache(contexts, blobs)
        self._sealer = sealer_from(settings.sealing_key)
        self._max_processes = max_processes(settings.worker_processes)
        instance_id, engine = instance or settings.worker_id, engine_named(settings.worker_launcher)
        self._groups = groups or groups_of(settings, instance_id)
        self.limits = limits_of(settings, self._groups, self._accounts)
        private_paths = [settings.worker_home, settings.trial_signing, settings.sealing_key, settings.blobs]
        self._roots = roots_of(settings, private_paths)
        self._engine = engine
        self._containers = (
            Containers(engine, settings, instance_id, self._roots) if engine is not None else None
        )
        self._task_files = TaskFiles(
            settings, self._accounts, self._roots, in_containers=self._containers is not None
        )

    def prepare(
        self, run_dir: Path, briefing: Briefing, slots: tuple[Slot, ...], position: int, used_ports: set[int]
    ) -> tuple[WarmStart | ColdStart, list[str]]:
        """Prepare one run.

        Returns how it may be started, and which parts of its configuration this worker ignores. Raises
        `CannotPrepare` with a text for the user.

        `position` is that of the assignment in the log; `used_ports` are the ports of other runs on this
        host.
        """
        number = ports.block_number(position, self._settings.cluster_id)
        try:
            # Only here: on disk, in the order, secrets stay sealed.
            briefing = self._decrypted(briefing)
            tokens = briefing.task.session_token, briefing.task.user_token
            hidden_values.save(run_dir, briefing.config, tokens)
            return self._prepare(run_dir, briefing, slots, _ports(briefing.gang, number, used_ports))
        except StorageRefused as error:
            raise CannotPrepare(f"Checkpoint storage validation failed: {error}") from error
        except Refused as error:
            raise CannotPrepare(str(error)) from error
        except (OSError, ValueError, BlobMissing) as error:
            raise CannotPrepare(f"the task could not be prepared: {error}") from error

    def _prepare(
        self, run_dir: Path, briefing: Briefing, slots: tuple[Slot, ...], ports: Ports
    ) -> tuple[WarmStart | ColdStart, list[str]]:
        account = self._accounts.choose(briefing.agent_user)
        home = run_dir if account is None else self._user_folders.make(run_dir.name)
        workdir, info_dir = home / "workdir", home / "info"
        self._unpack(briefing.context, workdir, home / "model")
        storage = briefing.config.get("checkpoint_storage")
        if storage is not None:
            self._probe(storage, account)
        gang, settings = briefing.gang, self._settings
        is_platform_task = briefing.task.task_type in PLATFORM_TASKS
        containers = None if is_platform_task else self._containers
        python = () if containers else interpreter_dirs(Path(settings.worker_python), home / "bin")
        placement = Placement(
            workdir=workdir,
            info_dir=info_dir,
            slots=slots,
            visible_devices=visible_devices(slots, counted=containers is not None and containers.hides_gpus),
            ports=ports,
            python_path=python,
            addresses=gang.addresses,
            slot_counts=gang.slot_counts,
            rank=gang.rank,
            account=None if containers else account,
            container=containers is not None,
        )
        task = briefing.task
        cluster = self._task_files.cluster(info_dir)
        write_info(
            info_dir, info_files(task, cluster, placement), self._task_files.private_files(info_dir, briefing)
        )
        inherited = user_variables(account, workdir) if containers else os.environ
        environment = variables(task, cluster, placement, inherited) | work_dir_variables(briefing)
        argv = self._command(briefing, workdir, len(slots), any_shell=containers is not None)
        if containers is not None:
            container_task = ContainerTask(
                allocation_id=task.allocation_id,
                argv=argv,
                variables=environment,
                workdir=workdir,
                info_dir=info_dir,
                account=account,
                ports=ports,
                storage=storage,
                gpus=tuple(slot.uuid for slot in slots if slot.kind == "cuda"),
            )
            container_command = containers.prepare_container(
                run_dir, container_task, read_request(briefing.config, slots, str(workdir))
            )
            if account is not None:
                chown_tree(home, account)
            fence, cwd = self._fence(briefing), run_dir if container_command.run_as is None else workdir
            process.prepare(
                run_dir,
                container_command.argv,
                cwd,
                container_command.env,
                fence,
                container_command.run_as,
                container_command.end,
                *self._limits(run_dir, slots, containers),
            )
            return ColdStart("it runs in a container"), container_command.notices
        notices = [] if is_platform_task else describe_unused(briefing.config, slots, str(workdir))
        run_as = None
        if account is not None:
            run_as = self._give_to_user(home, account, storage)
        elif settings.worker_container_paths and storage is not None:
            argv = wrap_with_mounts(argv, info_dir, storage, make=is_within(storage, self._roots))
        environment |= rank_variables(argv, environment, len(slots))
        limits = self._limits(run_dir, slots)
        process.prepare(run_dir, argv, workdir, environment, self._fence(briefing), run_as, None, *limits)
        if account is not None:
            # A template has the worker's rights, and its memory may hold what this user must not see.
            return ColdStart("it runs as another user than the worker"), notices
        if is_switched_off(briefing.config):
            return ColdStart("its configuration says environment.warm: false"), notices
        return plan_start(argv, environment, workdir, task.user), notices

    def _limits(
        self, run_dir: Path, slots: tuple[Slot, ...], containers: Containers | None = None
    ) -> tuple[int, int, tuple[process.Group, ...]]:
        """The bytes of output that are kept of a run and taken a second in the long run, and its groups."""
        output_bytes_s = int(self._settings.worker_output_mib_s * 2**20)
        # Most engines start containers from a program of their own, which is in no group of ours.
        in_groups = containers is None or containers.is_child
        groups = self._groups.groups(run_dir.name, len(slots)) if in_groups else ()
        return self._settings.worker_output_mib << 20, output_bytes_s, groups

    def _fence(self, briefing: Briefing) -> process.Fence | None:
        contact = str(self._settings.worker_home.absolute() / CONTACT)
        return process.Fence(contact, briefing.fence_s) if briefing.fence_s else None

    def _probe(self, storage: Mapping[str, Any], account: Account | None) -> None:
        """Check the storage with the rights that the task will have. Raises `StorageRefused`."""
        if account is not None and is_within(storage, self._roots):
            # What cannot be made here, the task's own upload explains.
            with contextlib.suppress(OSError):
                make_for_all(
                    storage_folder(storage, self._roots), tensorboard_folders(self._settings.cluster_id)
                )
        try:
            with file_access_as(account):
                probe(storage, self._roots, user=None if account is None else f"user {account}")
        except StorageRefused as error:
            if account is None:
                raise
            raise StorageRefused(
                f"{error}. Let that user write there, and enter every folder above it"
            ) from error

    def _give_to_user(self, home: Path, account: Account, storage: Mapping[str, Any] | None) -> process.RunAs:
        """Give a task's files to its user. From here on, no other user writes there."""
        with file_access_as(account):
            check_usable(Path(self._settings.worker_python), account)
            check_usable(self._user_folders.folder, account)
        chown_tree(home, account)
        binds: list[tuple[Path, Path]] = []
        if self._settings.worker_container_paths and storage is not None:
            binds = prepare_binds(home / "info", storage, account)
        own_binds = tuple((str(source), str(target)) for source, target in binds)
        return process.RunAs(account.uid, account.gid, own_binds, self._max_processes)

    def folder_of(self, run_dir: Path) -> Path:
        """The folder that a task may fill."""
        own = self._user_folders.folder_of(run_dir.name)
        return own if own.exists() else run_dir

    def has_files(self, allocation_id: str) -> bool:
        """Whether a task has files outside its run folder."""
        return self._user_folders.folder_of(allocation_id).exists()

    def clear(self, allocation_id: str) -> None:
        """Remove a task's files outside its run folder."""
        self._user_folders.clear(allocation_id)

    def remove_all_except(self, allocations: Collection[str]) -> None:
        """Remove what is left of tasks that this worker no longer knows, but for their files.

        Those are only set aside, because a worker that waited for their end would be taken for lost.
        """
        self._groups.remove_all_except(allocations)
        if self._containers is not None:
            self._containers.remove_all_except(allocations)
        self._user_folders.set_aside_all_except(allocations)

    def remove_set_aside(self) -> None:
        """Remove the files of tasks that this worker no longer knows."""
        self._user_folders.remove_set_aside()

    def _decrypted(self, briefing: Briefing) -> Briefing:
        """The briefing with its secrets decrypted. Raises `CannotOpen`."""
        replace = msgspec.structs.replace
        task = briefing.task
        config = open_secrets(briefing.config, task.user, self._sealer)
        if task.trial is not None:
            task = replace(task, trial=replace(task.trial, config=config))
        return replace(briefing, config=config, task=replace(task, config=config if task.config else {}))

    def _unpack(self, context: Context | None, workdir: Path, pristine: Path) -> None:
        if context is None:
            workdir.mkdir(parents=True, exist_ok=True)
            return
        unpack(self._contexts.get(context.digest), workdir, pristine)

    def renew(self, run_dir: Path, briefing: orders.Briefing) -> None:
        """Give a running task the current CA certificates, and a script new credentials in time.

        Raises `OSError`.
        """
        account = self._accounts.choose(briefing.agent_user)
        home = run_dir if account is None else self._user_folders.folder_of(run_dir.name)
        renewed = self._task_files.renewed(home / "info", briefing)
        # The script owns the folder and may have put links there, so write with the script's rights.
        with file_access_as(account):
            for name, content in renewed.items():
                write_atomic(home / "info" / name, content)

    async def fetch_image(self, run_dir: Path, report_progress: Callable[[str], Awaitable[None]]) -> None:
        """Fetch the image of a prepared run. May be cancelled. Raises `CannotPrepare`."""
        if self._engine is not None:
            try:
                await images.fetch(self._engine, run_dir, report_progress)
            except images.CannotFetch as error:
                raise CannotPrepare(str(error)) from error

    def _command(self, briefing: Briefing, workdir: Path, slots: int, *, any_shell: bool) -> list[str]:
        if briefing.deletion is not None:
            return ["python3", "-m", "determined.exec.gc_checkpoints"]
        nodes = len(briefing.gang.addresses)
        argv = expconf.entrypoint_command(briefing.config["entrypoint"], slots=slots, nodes=nodes)
        if folder := work_dir_of(briefing):
            return enter(argv, folder)
        if (workdir / startup_hook.HOOK).exists() and any_shell:
            return startup_hook.add_hook_for_any_shell(argv)
        if (workdir / startup_hook.HOOK).exists():
            return startup_hook.add_hook(argv, "bash" if shutil.which("bash") else "sh")
        return argv


def _ports(gang: Gang, number: int, used_ports: set[int]) -> Ports:
    # The nodes of a gang can only agree on ports that each can compute by itself.
    return ports.block(number) if len(gang.addresses) > 1 else ports.choose(number, used_ports, ports.is_free)

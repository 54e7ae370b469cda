"""Tells which limits each run on this worker has, and why others are missing, in words for users."""

from __future__ import annotations

from collections.abc import Iterator

from det_contracts.events.worker import Limit
from det_contracts.limits import NAME_CHARACTERS
from worker.account import Accounts, max_processes
from worker.control_groups import CPU, MEMORY, PIDS, RunGroups
from worker.launchers import engine_named
from worker.settings import WorkerSettings


def limits_of(settings: WorkerSettings, groups: RunGroups, accounts: Accounts) -> tuple[Limit, ...]:
    """The limits of each run. Their texts are as short as a registration may hold them."""
    limits = (*_group_limits(settings, groups, accounts), _disk(settings))
    return tuple(Limit(limit.kind, limit.holds, limit.text[:NAME_CHARACTERS]) for limit in limits)


def _group_limits(settings: WorkerSettings, groups: RunGroups, accounts: Accounts) -> Iterator[Limit]:
    engine = engine_named(settings.worker_launcher)
    if engine is not None and not engine.as_task_user:
        for kind in ("memory", "processes", "processor"):
            yield Limit(kind, False, f"only what STEADFAST_WORKER_CONTAINER_OPTIONS tells {engine.name}")
        return
    yield _memory(settings.worker_slot_memory_mib, groups.missing.get(MEMORY, ""))
    yield _processes(settings.worker_processes, groups.missing.get(PIDS, ""), accounts)
    missing = groups.missing.get(CPU, "")
    yield Limit("processor", not missing, missing or "a share that grows with the slots of the run")


def _memory(mib: int, missing: str) -> Limit:
    if missing or not mib:
        return Limit("memory", False, missing or "STEADFAST_WORKER_SLOT_MEMORY_MIB is not set")
    return Limit("memory", True, f"{mib:,} MiB for each slot of the run")


def _processes(setting: int, missing: str, accounts: Accounts) -> Limit:
    most = max_processes(setting)
    if not most:
        return Limit("processes", False, "STEADFAST_WORKER_PROCESSES says that there is none")
    if not missing:
        return Limit("processes", True, f"{most:,} processes and threads")
    if accounts.default is None:
        return Limit("processes", False, missing)
    # All that is left without groups.
    text = f"{most:,} processes and threads, which all runs of the same user share ({missing})"
    return Limit("processes", True, text)


def _disk(settings: WorkerSettings) -> Limit:
    if not settings.worker_disk_mib:
        return Limit("disk", False, "STEADFAST_WORKER_DISK_MIB is not set")
    return Limit("disk", True, f"{settings.worker_disk_mib:,} MiB in the folder of the run")

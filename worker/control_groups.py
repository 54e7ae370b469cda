"""Chooses the control groups of runs: what the kernel lets each run use, together with all that it starts.

A worker makes them below its own group, where it may: as root, or where a service manager has delegated that
group to it. Both versions of the kernel's interface are used. In version 1 each kind of limit has a tree of
its own. In version 2 there is one tree, and a group that limits others below it holds no process itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from services.kit.settings import BadSettings
from worker.account import max_processes
from worker.launchers import engine_named
from worker.process import Group
from worker.settings import WorkerSettings
from worker.shim.control_group import PROCESSES, ControlGroups, write_value

MEMORY, PIDS, CPU = "memory", "pids", "cpu"
KINDS = (MEMORY, PIDS, CPU)
OWN_LEAF = "steadfast-worker"
"""In version 2, the group of the worker itself, beside those of its runs."""
HOW_TO_DELEGATE = (
    "start the cluster with `systemd-run --scope -p Delegate=yes det deploy local cluster-up` (without root: "
    f"--user), a worker as a service with Delegate=yes and DelegateSubgroup={OWN_LEAF}, or name a group with "
    "STEADFAST_WORKER_CGROUP, for example /steadfast"
)
MOVES = 10
"""How often to look again for processes that were started while others were moved."""
NONE = "none"
NAME_LENGTH = 12
WEIGHT, MAX_WEIGHT, SHARES = 100, 10_000, 1024
"""The weight that every group has by itself, the largest of version 2, and what version 1 calls 100."""


class Tree(msgspec.Struct, frozen=True):
    """A tree of groups, and the worker's place in it."""

    version: int
    mount: Path
    own: Path
    """The folder of the worker's own group."""
    kinds: frozenset[str] = frozenset()
    """The kinds of limits that version 1 has in this tree."""


class RunGroups:
    """The control groups of one worker's runs."""

    def __init__(
        self,
        instance: str,
        *,
        below: str = "",
        slot_memory_mib: int = 0,
        max_processes: int = 0,
        proc: Path = Path("/proc/self"),
    ) -> None:
        """Args:
        below: The group below which they are, as in `/proc/self/cgroup`; empty: the worker's own; `none`.
        slot_memory_mib: What a run may use for each of its slots; 0: no limit.
        max_processes: Processes and threads that a run may have; 0: no limit.
        """
        self._prefix = f"steadfast-{instance[:NAME_LENGTH]}-"
        self._slot_memory, self._max_processes = slot_memory_mib << 20, max_processes
        self.missing: dict[str, str] = {}
        """By kind, why this worker cannot limit it."""
        self._folders: dict[str, Path] = {}
        if below == NONE:
            self.missing = dict.fromkeys(KINDS, "STEADFAST_WORKER_CGROUP=none")
            return
        self._choose(list(_trees(proc)), below)
        self._try_out()

    def _choose(self, trees: list[Tree], below: str) -> None:
        for kind in KINDS:
            # A kind is in one tree at a time.
            tree = next((tree for tree in trees if kind in tree.kinds), None)
            tree = tree or next((tree for tree in trees if tree.version == 2), None)
            if tree is None:
                self.missing[kind] = "this host shows no control groups"
                continue
            try:
                base = tree.mount / below.lstrip("/") if below else tree.own
                if below:
                    base.mkdir(parents=True, exist_ok=True)
                self._folders[kind] = base if tree.version == 1 else _base(tree, base, kind)
            except OSError as error:
                self.missing[kind] = f"{error.strerror or error}: {error.filename or tree.own}"

    def _try_out(self) -> None:
        """Make a group with a limit of each kind, and remove it: only that shows whether it is possible."""
        for kind in list(self._folders):
            groups = ControlGroups(msgspec.to_builtins(self._groups("trial-of-limits", 1, (kind,))))
            try:
                groups.make()
            except OSError as error:
                self.missing[kind] = f"{error.strerror or error}: {error.filename or self._folders[kind]}"
                del self._folders[kind]
            finally:
                groups.remove()

    def groups(self, allocation_id: str, slots: int) -> tuple[Group, ...]:
        """The groups of a run that holds so many slots."""
        return self._groups(allocation_id, slots, KINDS)

    def _groups(self, name: str, slots: int, kinds: Collection[str]) -> tuple[Group, ...]:
        values: dict[Path, list[tuple[str, str]]] = {}
        for kind, base in self._folders.items():
            if kind in kinds:
                values.setdefault(base / (self._prefix + name), []).extend(self._values(kind, base, slots))
        memory = self._slot_memory * max(slots, 1) >> 20
        limits = f"limit: {memory:,} MiB" if memory else ""
        return tuple(
            Group(str(folder), tuple(lines), limits if folder.parent == self._folders.get(MEMORY) else "")
            for folder, lines in values.items()
        )

    def _values(self, kind: str, base: Path, slots: int) -> Iterator[tuple[str, str]]:
        first = _is_first_version(base)
        if kind == CPU:
            weight = min(WEIGHT * max(slots, 1), MAX_WEIGHT)
            yield ("cpu.shares", str(weight * SHARES // WEIGHT)) if first else ("cpu.weight", str(weight))
        elif kind == PIDS:
            yield "pids.max", str(self._max_processes or "max")
        elif memory := str(self._slot_memory * max(slots, 1)) if self._slot_memory else "":
            yield ("memory.limit_in_bytes" if first else "memory.max"), memory
            # A run that moves to swap slows everybody down before it ends. Not every kernel counts it.
            if first and (base / "memory.memsw.limit_in_bytes").exists():
                yield "memory.memsw.limit_in_bytes", memory
            elif not first and Path("/proc/swaps").exists():
                yield "memory.swap.max", "0"

    def remove_all_except(self, allocations: Collection[str]) -> None:
        """Remove groups of runs that are no longer known. One in which something still runs stays."""
        for base in set(self._folders.values()):
            for folder in base.glob(f"{self._prefix}*"):
                if folder.name.removeprefix(self._prefix) not in allocations:
                    with contextlib.suppress(OSError):
                        folder.rmdir()


def groups_of(settings: WorkerSettings, instance: str) -> RunGroups:
    """The groups of a worker's runs. Raises `BadSettings` for a limit that would not be kept."""
    groups = RunGroups(
        instance,
        below=settings.worker_cgroup,
        slot_memory_mib=settings.worker_slot_memory_mib,
        max_processes=max_processes(settings.worker_processes),
    )
    if not settings.worker_slot_memory_mib:
        return groups
    named = f"STEADFAST_WORKER_SLOT_MEMORY_MIB={settings.worker_slot_memory_mib}"
    engine = engine_named(settings.worker_launcher)
    if engine is not None and not engine.as_task_user:
        raise BadSettings(
            f"{named}: {engine.name} limits its containers itself. Give it the limit with "
            'STEADFAST_WORKER_CONTAINER_OPTIONS="--memory=16g"'
        )
    if MEMORY in groups.missing:
        raise BadSettings(
            f"{named}: this worker cannot limit memory ({groups.missing[MEMORY]}). Leave the setting out, or "
            "let the worker make control groups (docs/guides/hardening.md)"
        )
    return groups


def _base(tree: Tree, base: Path, kind: str) -> Path:
    """The group of version 2 below which groups can limit `kind`. Raises `OSError`."""
    # The root of all groups is the only one that may hold processes and limit those below it.
    is_root = not (base / "cgroup.type").exists()
    if base == tree.own and base.name == OWN_LEAF:
        base = base.parent
    elif base == tree.own and not is_root:
        _leave(base)
    if kind not in (base / "cgroup.controllers").read_text().split():
        missing = f"'{kind}' is not in its cgroup.controllers, so nothing can be limited below"
        raise OSError(0, f"{missing}; enable it in cgroup.subtree_control of the groups above", str(base))
    if kind not in (base / "cgroup.subtree_control").read_text().split():
        write_value(str(base / "cgroup.subtree_control"), f"+{kind}")
    return base


def _leave(own: Path) -> None:
    """Move the worker into a group below its own, and what else is there if it may. Raises `OSError`."""
    if _pids(own) - {str(os.getpid())} and not _is_delegated(own):
        raise OSError(0, f"its control group holds other programs, too; {HOW_TO_DELEGATE}", str(own))
    (own / OWN_LEAF).mkdir(exist_ok=True)
    for _ in range(MOVES):
        for pid in _pids(own):
            # It may have ended by now.
            with contextlib.suppress(ProcessLookupError):
                write_value(str(own / OWN_LEAF / PROCESSES), pid)


def _pids(group: Path) -> set[str]:
    # A process that this one cannot see has the number 0, which stands for the writer in a move.
    return set((group / PROCESSES).read_text().split()) - {"0"}


def _is_delegated(group: Path) -> bool:
    """Whether systemd has handed a group over to the programs that it started there."""
    for attribute in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(group, attribute) == b"1":
                return True
    return False


def _is_first_version(folder: Path) -> bool:
    return not (folder / "cgroup.controllers").exists()


def _trees(proc: Path) -> Iterator[Tree]:
    """The trees of groups that this process sees and has a place in."""
    try:
        places = [line.split(":", 2) for line in (proc / "cgroup").read_text().splitlines()]
        mounts = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return
    for line in mounts:
        left, _, right = line.partition(" - ")
        root, mount = left.split()[3:5]
        type_name, _, options = right.split()[:3]
        for number, names, path in places:
            kinds = frozenset(names.split(",")) if names else frozenset()
            is_first = type_name == "cgroup" and bool(kinds) and kinds <= set(options.split(","))
            if not is_first and not (type_name == "cgroup2" and number == "0"):
                continue
            # In a container, the tree may be mounted from the container's own group on.
            below = path.removeprefix(root if root != "/" else "")
            yield Tree(1 if is_first else 2, Path(mount), Path(mount) / below.lstrip("/"), kinds)

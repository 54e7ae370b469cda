"""The node that a launcher runs on, and the other nodes of its allocation."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import Any, NamedTuple, NoReturn

from determined._info import ClusterInfo, get_cluster_info

DEFAULT_SSH_PORT = 12350
DEFAULT_C10D_PORT = 29400


class Node(NamedTuple):
    """Information that a launcher needs."""

    addresses: tuple[str, ...]
    slot_counts: tuple[int, ...]
    rank: int
    slots: int
    """Number of slots on this node; may be 0."""
    allocation_id: str
    master_url: str = ""
    session_token: str = ""
    config: dict[str, Any] = {}  # noqa: RUF012 - never modified
    interface: str | None = None
    cluster_id: str = ""

    @property
    def name_of_files(self) -> str:
        """A short name that no other allocation has, for its files in the system's temporary directory."""
        # Two clusters may share a host, and each of them has an allocation 1.t1.1.
        allocation = f"{self.cluster_id}\0{self.allocation_id}"
        return hashlib.sha256(allocation.encode()).hexdigest()[:12]

    @property
    def alone(self) -> bool:
        """Whether this is the only node of the allocation."""
        return len(self.addresses) == 1

    @property
    def chief(self) -> bool:
        """Whether this is the chief node."""
        return self.rank == 0

    @property
    def processes(self) -> int:
        """Number of processes to start here: one per slot, or one if there are no slots."""
        return max(self.slots, 1)

    @property
    def debug(self) -> bool:
        """Whether the experiment requests debug output."""
        return bool(self.config.get("debug"))


def this_node(launcher: str, locally: str, *, trials_only: bool = False) -> Node:
    """Return the current node. Off cluster, exit with a hint what to use there instead."""
    info = get_cluster_info()
    if info is None:
        stop(f"{launcher} runs inside a trial; on your own machine use {locally}")
    if trials_only and info.task_type != "TRIAL":
        stop(f"{launcher} runs inside a trial, not in a task of type {info.task_type}")
    if trials_only and not os.environ.get("DET_RESOURCES_ID"):
        raise AssertionError("DET_RESOURCES_ID is not set: was this started by a worker?")
    return node_of(info)


def node_of(info: ClusterInfo) -> Node:
    """Return the node described by a cluster info."""
    trial = info.trial if info.task_type == "TRIAL" else None
    return Node(
        addresses=tuple(info.container_addrs),
        slot_counts=tuple(info.container_slot_counts),
        rank=info.container_rank,
        slots=len(info.slot_ids),
        allocation_id=info.allocation_id,
        master_url=info.master_url,
        session_token=info.session_token,
        config=trial._config if trial is not None else {},
        interface=trial._inter_node_network_interface if trial is not None else None,
        cluster_id=info.cluster_id,
    )


def ssh_port() -> int:
    """Return the port on which sshd listens on every node of this allocation."""
    return int(os.environ.get("DTRAIN_SSH_PORT") or DEFAULT_SSH_PORT)


def c10d_port() -> int:
    """Return the port of torch's store for this allocation."""
    return int(os.environ.get("C10D_PORT") or DEFAULT_C10D_PORT)


def stop(message: str, code: int = 1) -> NoReturn:
    """Exit with one line on stderr."""
    print(message, file=sys.stderr, flush=True)
    raise SystemExit(code)


def account_name(user: str, instead: str) -> str:
    """Return the name of the account that this process runs as. Exits if there is none.

    For a `user` of SSH, whose programs look the account up: no setting or variable can stand in for it.
    """
    # Only on Unix, as are the callers.
    import pwd

    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        stop(
            f"{user} needs SSH, which works for accounts alone: this task runs as user {uid}, and no account "
            "here has that id.\n"
            f"Make one on each worker, or in the task's image (useradd --uid {uid} NAME), or let the task "
            f"run as another user (STEADFAST_WORKER_RUN_AS, 'det user link-with-agent-user'). {instead}"
        )


def missing(launcher: str, package: str, what: str, instead: str) -> NoReturn:
    """Exit because the training environment lacks the program that the launcher starts."""
    stop(
        f"{launcher}: the training environment has no {package} ({what}, interpreter {sys.executable}).\n"
        f"Install it there{instead}."
    )

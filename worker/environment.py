"""Builds a task's environment variables and info directory from plain inputs.

Variables: core API spec, section 3, and scheduling spec, section 10. Files: core API spec, section 2.1.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from det_contracts.events.worker import Slot
from det_contracts.ids import container_id
from worker import account as accounts
from worker.account import Account
from worker.ports import Ports

DROPPED_PREFIXES = ("STEADFAST_", "DET_", "PYTHON", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES")
"""Prefixes of the worker's own variables that tasks must not see: secrets, and paths of the platform."""
PORTS = ("DTRAIN_SSH_PORT", "INTER_TRAIN_PROCESS_COMM_PORT_1", "INTER_TRAIN_PROCESS_COMM_PORT_2", "C10D_PORT")
"""Variables that hold the ports of a run."""
MAX_VARIABLE_BYTES = 128 * 1024 - 1
"""Longest `NAME=VALUE` that Linux passes to a process. A longer one prevents the process from starting."""
Content = Mapping[str, Any]
_IDENTITY = re.compile(r"DET_\w*_ID|DET_SESSION_TOKEN|DET_USER_TOKEN|DET_INFO_DIR")


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The trial that a task runs."""

    trial_id: int
    experiment_id: int
    run: int
    seed: int
    hparams: dict[str, Any]
    config: dict[str, Any]
    """The complete merged experiment configuration."""
    steps_completed: int = 0
    """Steps completed at the latest checkpoint."""
    network_interface: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What runs, and for whom."""

    task_id: str
    allocation_id: str
    resources_id: str
    """Identifies this node's part of the allocation."""
    task_type: str
    user: str
    user_token: str
    session_token: str = ""
    """The same on all nodes of the allocation; their scripts recognise each other by it."""
    latest_checkpoint: str | None = None
    trial: Trial | None = None
    config: dict[str, Any] = {}
    """The configuration of a task that is not a trial's."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Where the control plane is."""

    master_url: str
    """With the scheme, without a trailing slash."""
    cluster_id: str
    agent_id: str
    """The worker's id."""
    cert_file: str | None = None
    cert_name: str | None = None


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where on this host the task runs, and with what."""

    workdir: Path
    info_dir: Path
    slots: tuple[Slot, ...]
    visible_devices: str
    """Value of CUDA_VISIBLE_DEVICES; see `worker.slots.visible_devices`."""
    ports: Ports
    python_path: tuple[Path, ...]
    """Directories that make `python` and `python3` the training interpreter; see `interpreter_dirs`."""
    addresses: tuple[str, ...] = ("127.0.0.1",)
    """Addresses of all nodes, by rank."""
    slot_counts: tuple[int, ...] = ()
    """Slot counts of all nodes, by rank; empty if there is only this node."""
    rank: int = 0
    """Rank of this node."""
    account: Account | None = None
    """The account that the task runs as; None: the worker's own user."""
    container: bool = False
    """Whether the task has its own file system with its own interpreter."""


def variables(
    task: Task, cluster: Cluster, placement: Placement, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return the complete environment of a task. `inherited` is the worker's own; most of it is passed on.

    The user's variables override all others except those that identify the task.
    """
    base = {name: value for name, value in inherited.items() if _is_inheritable(name, value)}
    if placement.account is not None:
        base = accounts.variables(placement.account, base, placement.workdir.parent)
    base.setdefault("HOME", str(placement.workdir))
    ours = _platform_variables(task, cluster, placement)
    env = {**base, "PYTHONUNBUFFERED": "1", "DET_PYTHON_EXECUTABLE": "python3", **ours}
    config = task.trial.config if task.trial is not None else task.config
    for name, value in _user_variables(config, placement.slots, base).items():
        # A configuration that was copied from inside of a task would otherwise make the script report for
        # that task.
        if _IDENTITY.fullmatch(name):
            continue
        env.pop(name, None)
        if value is not None:
            env[name] = value
    if not placement.container:
        path = env.get("PATH") or os.defpath
        # Before the user's own PATH, so that `python3` in an entrypoint is the interpreter of the cluster.
        env["PATH"] = os.pathsep.join([*map(str, placement.python_path), path])
    return env


def info_files(task: Task, cluster: Cluster, placement: Placement) -> dict[str, dict[str, Any]]:
    """Name and content of each file in the info directory."""
    files: dict[str, dict[str, Any]] = {
        "rendezvous.json": {
            "container_addrs": list(placement.addresses),
            "container_rank": placement.rank,
            "container_slot_counts": list(placement.slot_counts or (len(placement.slots),)),
        },
        "resources.json": {"gpu_uuids": [slot.uuid for slot in placement.slots if slot.kind == "cuda"]},
    }
    if task.trial is not None:
        files["trial.json"] = _trial_file(task.trial)
    # Last, because this is the file by which a script recognises that it runs on a cluster.
    files["cluster.json"] = {
        "master_url": cluster.master_url,
        "cluster_id": cluster.cluster_id,
        "agent_id": cluster.agent_id,
        "slot_ids": [slot.id for slot in placement.slots],
        "task_id": task.task_id,
        "allocation_id": task.allocation_id,
        "session_token": task.session_token,
        "task_type": task.task_type,
        "master_cert_name": cluster.cert_name,
        "master_cert_file": cluster.cert_file,
        "latest_checkpoint": task.latest_checkpoint,
    }
    return files


def write_info(info_dir: Path, files: Mapping[str, Content], private: Mapping[str, Content]) -> None:
    """Write the info directory, each file atomically. `private` files are readable by their owner only."""
    info_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in private.items():
        _write(info_dir / name, content, 0o600)
    for name, content in files.items():
        _write(info_dir / name, content, 0o644)


def interpreter_dirs(interpreter: Path, wrappers: Path) -> tuple[Path, ...]:
    """Return the directories to put first on PATH so that `python` and `python3` are `interpreter`.

    If its own directory lacks one of the names, or the name is another interpreter there, small scripts are
    written into `wrappers`. (A link would hide a virtual environment.)
    """
    folder = interpreter.parent
    same = [folder / name for name in ("python", "python3")]
    if all(path.exists() and path.samefile(interpreter) for path in same):
        return (folder,)
    wrappers.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        script = wrappers / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(interpreter))} "$@"\n')
        script.chmod(0o755)
    return (wrappers, folder)


def _is_inheritable(name: str, value: str) -> bool:
    """Exclude the platform's variables and values that are not valid text: records of runs are JSON."""
    try:
        f"{name}={value}".encode()
    except UnicodeEncodeError:
        return False
    return not name.startswith(DROPPED_PREFIXES)


def _trial_file(trial: Trial) -> dict[str, Any]:
    return {
        "trial_id": trial.trial_id,
        "experiment_id": trial.experiment_id,
        "trial_seed": trial.seed,
        "hparams": trial.hparams,
        "config": trial.config,
        "steps_completed": trial.steps_completed,
        "trial_run_id": trial.run,
        "debug": bool(trial.config.get("debug", False)),
        "inter_node_network_interface": trial.network_interface,
    }


def _platform_variables(task: Task, cluster: Cluster, placement: Placement) -> dict[str, str]:
    return {
        **_cluster_variables(cluster),
        **_port_variables(placement.ports),
        **(_trial_variables(task.trial) if task.trial is not None else {}),
        **({"DET_LATEST_CHECKPOINT": task.latest_checkpoint} if task.latest_checkpoint else {}),
        "DET_TASK_ID": task.task_id,
        "DET_ALLOCATION_ID": task.allocation_id,
        "DET_TASK_TYPE": task.task_type,
        "DET_RESOURCES_ID": task.resources_id,
        "DET_RESOURCES_TYPE": "docker-container" if placement.container else "process",
        "DET_CONTAINER_ID": container_id(task.allocation_id, cluster.agent_id),
        "DET_SESSION_TOKEN": task.session_token,
        "DET_USER": task.user,
        "DET_USER_TOKEN": task.user_token,
        "DET_SLOT_IDS": json.dumps([slot.id for slot in placement.slots], separators=(",", ":")),
        "DET_WORKDIR": str(placement.workdir),
        "DET_INFO_DIR": str(placement.info_dir),
        "DET_TASK_LOGGING_METADATA": json.dumps(
            {"task_id": task.task_id, "allocation_id": task.allocation_id, "agent_id": cluster.agent_id}
        ),
        # By default CUDA counts the fastest device first, so that its indices are not those of the driver.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": placement.visible_devices,
    }


def _cluster_variables(cluster: Cluster) -> dict[str, str]:
    url = urlsplit(cluster.master_url)
    tls = url.scheme == "https"
    host = url.hostname or ""
    set_variables = {
        "DET_MASTER": cluster.master_url,
        "DET_MASTER_HOST": host,
        "DET_MASTER_ADDR": host,
        "DET_MASTER_PORT": str(url.port or (443 if tls else 80)),
        "DET_MASTER_ID": cluster.cluster_id,
        "DET_CLUSTER_ID": cluster.cluster_id,
        "DET_AGENT_ID": cluster.agent_id,
        "DET_USE_TLS": "true" if tls else "false",
        "DET_MASTER_CERT_FILE": cluster.cert_file,
        "DET_MASTER_CERT_NAME": cluster.cert_name,
    }
    return {name: value for name, value in set_variables.items() if value is not None}


def _port_variables(ports: Ports) -> dict[str, str]:
    numbers = (ports.dtrain_ssh, ports.comm_1, ports.comm_2, ports.c10d)
    return {name: str(number) for name, number in zip(PORTS, numbers, strict=True)}


def _trial_variables(trial: Trial) -> dict[str, str]:
    set_variables = {
        "DET_TRIAL_ID": str(trial.trial_id),
        "DET_EXPERIMENT_ID": str(trial.experiment_id),
        "DET_TRIAL_RUN_ID": str(trial.run),
        "DET_TRIAL_SEED": str(trial.seed),
        "DET_STEPS_COMPLETED": str(trial.steps_completed),
        "DET_EXPERIMENT_CONFIG": json.dumps(trial.config),
        "DET_HPARAMS": json.dumps(trial.hparams),
        "DET_INTER_NODE_NETWORK_INTERFACE": trial.network_interface,
    }
    return {
        name: value
        for name, value in set_variables.items()
        if value is not None and len(name) + len(value) + 1 < MAX_VARIABLE_BYTES
    }


def _user_variables(
    config: Content, slots: Sequence[Slot], inherited: Mapping[str, str]
) -> dict[str, str | None]:
    """The variables that the configuration sets for the kind of slots at hand; None unsets one.

    A name without `=` takes the worker's value, if it has one.
    """
    listed = (config.get("environment") or {}).get("environment_variables") or []
    if isinstance(listed, Mapping):
        kind = "cuda" if any(slot.kind == "cuda" for slot in slots) else "cpu"
        listed = listed.get(kind) or []
    set_variables: dict[str, str | None] = {}
    for item in listed:
        name, equals, value = item.partition("=")
        set_variables[name] = value if equals else inherited.get(name)
    return set_variables


def _write(path: Path, content: Content, mode: int) -> None:
    fresh = path.with_name(path.name + ".new")
    # With O_EXCL below: what a script may have left under this name, such as a link, is not written through.
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        # Not `json.dump`, which encodes piece by piece in Python and takes five times as long.
        file.write(json.dumps(content).encode())
    fresh.rename(path)

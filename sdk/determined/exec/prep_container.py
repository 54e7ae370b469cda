"""Prepares a node for its task: `python3 -m determined.exec.prep_container [--trial] [--resources] ...`.

For container images. A worker that starts processes prepares everything itself. Every step can be repeated.
Source: launchers spec, section 10.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import logging
import os
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import determined as det
from determined._info import info_directory

logger = logging.getLogger("determined.exec.prep_container")
NEEDED = (
    "DET_MASTER",
    "DET_CLUSTER_ID",
    "DET_AGENT_ID",
    "DET_SLOT_IDS",
    "DET_TASK_ID",
    "DET_ALLOCATION_ID",
    "DET_SESSION_TOKEN",
    "DET_TASK_TYPE",
)
RESOURCES_TYPES = ("docker-container", "k8s-pod", "slurm-job", "process")
PRISTINE = Path("/run/determined/train/model")
ATTEMPTS = 6
CONNECT_S = 60.0
ANSWER_S = 660.0
"""Timeout of the rendezvous request.

The master answers it once the last node has started, or after ten minutes. Longer than that, so that the
request is repeated only if the master has vanished.
"""
_GPUS = (
    ("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"),
    ("rocm-smi", "--showuniqueid", "--csv"),
)


def main(args: Sequence[str] | None = None) -> int:
    """Perform the requested steps."""
    options = _arguments(args)
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    folder = info_directory()
    write_once(folder / "cluster.json", lambda: cluster_file(os.environ))
    if options.trial:
        write_once(folder / "trial.json", lambda: trial_file(os.environ))
        unpack(_model_definition(os.environ), [PRISTINE, Path(os.environ.get("DET_WORKDIR") or Path.cwd())])
    if options.resources:
        gpus = visible_gpus()
        write_once(folder / "resources.json", lambda: {"gpu_uuids": gpus})
        logger.info(
            "Running task container on agent_id=%s, hostname=%s with visible GPUs %s",
            *(os.environ["DET_AGENT_ID"], socket.gethostname(), gpus),
        )
    if options.rendezvous:
        write_once(folder / "rendezvous.json", lambda: _rendezvous(os.environ))
    return 0


def _arguments(args: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="prep_container", description="prepare this node for its task")
    parser.add_argument("--trial", action="store_true", help="describe the trial and unpack its code")
    parser.add_argument("--resources", action="store_true", help="describe the devices of this node")
    parser.add_argument("--rendezvous", action="store_true", help="wait for all nodes of the allocation")
    parser.add_argument("--proxy", action="store_true", help="accepted; batch systems alone need it")
    parser.add_argument("--notify_container_running", action="store_true", help="accepted, as --proxy")
    return parser.parse_args(args)


def write_once(path: Path, content: Any) -> None:
    """Write the result of `content()`, unless the file exists."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content()))
    # In one step: another process may be waiting for this file.
    part.replace(path)


def cluster_file(environment: Mapping[str, str]) -> dict[str, Any]:
    """Build the cluster description from variables. Raises RuntimeError if some are missing."""
    missing = [name for name in NEEDED if name not in environment]
    if missing:
        raise RuntimeError(f"missing environment keys {missing}, is this running on-cluster?")
    return {
        "master_url": environment["DET_MASTER"].rstrip("/"),
        "cluster_id": environment["DET_CLUSTER_ID"],
        "agent_id": environment["DET_AGENT_ID"],
        "slot_ids": json.loads(environment["DET_SLOT_IDS"]),
        "task_id": environment["DET_TASK_ID"],
        "allocation_id": environment["DET_ALLOCATION_ID"],
        "session_token": environment["DET_SESSION_TOKEN"],
        "task_type": environment["DET_TASK_TYPE"],
        "master_cert_name": environment.get("DET_MASTER_CERT_NAME"),
        "master_cert_file": environment.get("DET_MASTER_CERT_FILE"),
        "latest_checkpoint": environment.get("DET_LATEST_CHECKPOINT"),
    }


def trial_file(environment: Mapping[str, str]) -> dict[str, Any]:
    """Build the trial description from variables."""
    config = json.loads(environment["DET_EXPERIMENT_CONFIG"])
    return {
        "trial_id": int(environment["DET_TRIAL_ID"]),
        "experiment_id": int(environment["DET_EXPERIMENT_ID"]),
        "trial_seed": int(environment["DET_TRIAL_SEED"]),
        "hparams": json.loads(environment["DET_HPARAMS"]),
        "config": config,
        "steps_completed": int(environment.get("DET_STEPS_COMPLETED") or 0),
        "trial_run_id": int(environment.get("DET_TRIAL_RUN_ID") or 1),
        "debug": bool(config.get("debug")),
        "inter_node_network_interface": environment.get("DET_INTER_NODE_NETWORK_INTERFACE"),
    }


def unpack(archive: bytes, folders: Sequence[Path]) -> None:
    """Unpack code into each directory, over existing files.

    Raises ValueError for a path that leads outside.
    """
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        # All names before the first file, so that a refused archive leaves nothing.
        for member in tar:
            if member.name.startswith("/") or ".." in Path(member.name).parts:
                raise ValueError(f"{member.name} in the model definition leads out of its folder")
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            tar.extractall(folder, filter="data")


def visible_gpus() -> list[str]:
    """Return the UUIDs of this node's GPUs, by index. Empty without a tool that lists them."""
    for command in _GPUS:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            # No such tool, or no driver: the next one may list GPUs.
            continue
        rows = [line.split(",") for line in done.stdout.splitlines() if "," in line]
        numbered = [(row[0].strip().removeprefix("card"), row[1].strip()) for row in rows]
        # By index and not in the order of the tool's rows, since scripts count GPUs by index.
        return [uuid for _, uuid in sorted((int(index), uuid) for index, uuid in numbered if index.isdigit())]
    return []


def _model_definition(environment: Mapping[str, str]) -> bytes:
    answer = _ask(environment, f"/api/v1/experiments/{environment['DET_EXPERIMENT_ID']}/model_def")
    return base64.b64decode(answer.get("b64Tgz") or "")


def _rendezvous(environment: Mapping[str, str]) -> dict[str, Any]:
    kind, resources_id = environment["DET_RESOURCES_TYPE"], environment["DET_RESOURCES_ID"]
    if kind not in RESOURCES_TYPES:
        raise ValueError(f"unsupported resources type: {kind}")
    allocation = environment["DET_ALLOCATION_ID"]
    answer = _ask(environment, f"/api/v1/allocations/{allocation}/resources/{resources_id}/rendezvous")
    rendezvous = answer["rendezvousInfo"]
    return {
        "container_addrs": rendezvous["addresses"],
        "container_rank": rendezvous.get("rank", 0),
        "container_slot_counts": rendezvous["slots"],
    }


def _ask(environment: Mapping[str, str], path: str) -> dict[str, Any]:
    import requests

    url = environment["DET_MASTER"].rstrip("/") + path
    headers = {"Authorization": f"Bearer {environment['DET_SESSION_TOKEN']}"}
    for attempt in range(ATTEMPTS):
        try:
            answer = requests.get(
                url,
                headers=headers,
                timeout=(CONNECT_S, ANSWER_S),
                verify=environment.get("DET_MASTER_CERT_FILE") or True,
            )
            answer.raise_for_status()
            body: dict[str, Any] = answer.json()
            return body
        except requests.RequestException as error:
            tls = environment.get("DET_MASTER_CERT_FILE") or "the system's certificates"
            logger.warning("%s (TLS: %s) did not answer: %s", url, tls, error)
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(2.0**attempt)
    raise AssertionError("unreachable")


if __name__ == "__main__":
    sys.exit(main())

"""The other nodes of an allocation, which Horovod and DeepSpeed reach over SSH."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from determined.launch._node import Node, account_name, ssh_port, stop

SSH_FOLDER = Path("/run/determined/ssh")
WITHOUT_SSH = '"python3 -m determined.launch.torch_distributed" (it needs no SSH)'
PATIENCE_S = 20.0
PAUSE_S = 0.1
_GREETING = b"SSH-"


def ssh_folder() -> Path:
    """Return the directory with an allocation's keys and sshd_config."""
    return Path(os.environ.get("DET_SSH_DIR") or SSH_FOLDER)


def require_sshd(launcher: str, node: Node) -> str:
    """Return the path of sshd. Exits if the nodes could not reach each other."""
    program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    config = ssh_folder() / "sshd_config"
    if program is None or not config.exists():
        lacking = "program on PATH" if program is None else f"configuration {config}"
        stop(
            f"{launcher}: {len(node.addresses)} nodes talk over SSH, but this one has no sshd {lacking}.\n"
            f"Provide it, or use {WITHOUT_SSH}."
        )
    account_name(f"{launcher} on {len(node.addresses)} nodes", f"Or use {WITHOUT_SSH}.")
    return program


def sshd_command(program: str, debug: bool) -> list[str]:
    """Return the sshd command that runs on a node for the chief to connect to."""
    more = ["-e"] if debug else []
    return [program, "-p", str(ssh_port()), "-f", str(ssh_folder() / "sshd_config"), "-D", *more]


def wait_for_peers(addresses: Iterable[str], port: int, patience_s: float = PATIENCE_S) -> None:
    """Wait until every address answers like sshd. Raises ValueError naming one that did not in time."""
    deadline = time.monotonic() + patience_s
    for address in addresses:
        while not _greets(address, port, deadline):
            if time.monotonic() >= deadline:
                raise ValueError(
                    f"Chief machine was unable to connect to sshd on peer machine at {address}:{port}"
                )
            time.sleep(PAUSE_S)


def _greets(address: str, port: int, deadline: float) -> bool:
    left = max(deadline - time.monotonic(), PAUSE_S)
    try:
        with socket.create_connection((address, port), timeout=left) as peer:
            # A port that is open could be that of another program.
            return peer.recv(len(_GREETING)) == _GREETING
    except OSError:
        return False


def mark_as_daemon(node: Node) -> None:
    """Tell the platform that this node only serves the chief, so the task does not wait for it to end."""
    request = urllib.request.Request(
        f"{node.master_url}/api/v1/allocations/{node.allocation_id}/resources/"
        f"{os.environ['DET_RESOURCES_ID']}/daemon",
        data=b"{}",
        headers={"Authorization": f"Bearer {node.session_token}", "Content-Type": "application/json"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=60):
            pass
    except OSError as error:
        # No reason to stop: training works, and only the end of the task waits for this node.
        print(f"this node could not be marked as daemon: {error}", file=sys.stderr, flush=True)


def serve_ssh(node: Node, program: str, server: list[str], environment: dict[str, str]) -> list[str]:
    """Return the command for a node that is not the chief."""
    mark_as_daemon(node)
    environment["DET_CHIEF_IP"] = node.addresses[0]
    return [*server, *sshd_command(program, node.debug)]

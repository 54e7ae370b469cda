"""Commands for workers that are not children of the launcher: see `determined.exec.pid_server`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from determined.launch._node import Node

SERVER = ("python3", "-m", "determined.exec.pid_server")
CLIENT = ("python3", "-m", "determined.exec.pid_client")
WRAP_RANK = ("python3", "-m", "determined.launch.wrap_rank")
_LONGEST_SOCKET_PATH = 100


def socket_path(node: Node) -> str:
    """Return the socket path of a node. It includes the rank, because two nodes may share a host."""
    name = f"pid_server-{node.name_of_files}-{node.rank}"
    path = Path(tempfile.gettempdir()) / name
    return str(path) if len(str(path)) < _LONGEST_SOCKET_PATH else str(Path("/tmp") / name)  # noqa: S108 - the shortest that there is


def server(node: Node, *options: str) -> list[str]:
    """Return the prefix of the command that starts a node's workers, including `--`."""
    return [*SERVER, *options, socket_path(node), str(node.processes), "--"]


def worker(node: Node, rank_variables: str, script: list[str]) -> list[str]:
    """Return the command that each worker runs."""
    return [*CLIENT, socket_path(node), "--", *WRAP_RANK, rank_variables, "--", *script]

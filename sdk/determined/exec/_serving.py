"""Common parts of tasks that users reach through the gateway: address, key and announcement."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import determined as det
from det_contracts.page_key import page_key
from determined._info import info_directory
from determined.launch._node import c10d_port, stop
from determined.transport.rest import Session

logger = logging.getLogger("determined.exec")
PAUSE_S = 0.1
SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"


class Served(NamedTuple):
    """A task that serves requests."""

    info: det.ClusterInfo
    order: dict[str, Any]
    """The order that the worker wrote for this kind of task."""
    host: str
    port: int
    key: str
    """Key that the gateway presents; shared only by gateway and task."""


def served(name: str, command: str) -> Served:
    """Read the order from the file `name` in the info directory. Exits if not in a task."""
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    if info is None:
        stop(f"this program runs inside a task: {command}")
    order = json.loads((info_directory() / name).read_text())
    key = page_key(info.session_token)
    return Served(info, order, order.get("host") or "127.0.0.1", c10d_port(), key)


def session_of(info: det.ClusterInfo) -> Session:
    """Open a session with the rights of the task."""
    session = Session(info.master_url)
    session.token = info.session_token
    return session


def announce(task: Served, account: str = "") -> None:
    """Report this task's address to the master, once it accepts connections."""
    while not listens_here(task.port):
        time.sleep(PAUSE_S)
    with session_of(task.info) as session:
        path = f"/api/v1/allocations/{task.info.allocation_id}/proxy_address"
        session.post(path, {"proxyAddress": f"{task.host}:{task.port}", "account": account})
    logger.info("task %s answers on %s:%d", task.info.task_id, task.host, task.port)


def listens_here(port: int, tables: Iterable[Path] = SOCKETS) -> bool:
    """Return whether a process of this user accepts connections at a port of this host.

    A script of another user may have taken the port, and would be sent what is meant for this task.
    """
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for _, local, _, state, _, _, _, user, *_ in map(str.split, lines):
            taken = state == LISTENING and int(local.rpartition(":")[2], 16) == port
            if taken and int(user) == os.geteuid():
                return True
    return False

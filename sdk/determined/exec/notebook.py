"""Runs JupyterLab: the program of a NOTEBOOK task.

Reads `notebook.json` in the info directory: `host` (address to listen on), `idle_type`, and `watched`
(whether to report idleness). Only the gateway can connect, because each request must carry a key that only
the two know (`page_key`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from det_contracts.page_key import credential
from determined._info import info_directory
from determined.exec import _serving
from determined.exec._serving import Served, logger
from determined.launch import _child
from determined.launch._node import stop

POLL_EVERY_S = 5.0
ANSWER_S = 30.0
NEWS = "@jupyterlab/apputils-extension:notification"
NEEDED = ("jupyterlab", "ipykernel")
Listed = list[dict[str, Any]]


class Idleness:
    """Determines whether a notebook is in use, according to its `notebook_idle_type`."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._active = ""
        """Time of the last activity, as reported by the notebook server."""

    def is_idle(self, kernels: Listed, terminals: Listed) -> bool:
        """Whether the notebook is idle, judged by its running kernels and terminals.

        Example:
            >>> Idleness("kernels_or_terminals").is_idle([], [])
            True
        """
        if self._kind == "kernels_or_terminals":
            return not kernels and not terminals
        if self._kind == "kernel_connections":
            return not any(entry.get("connections") for entry in kernels)
        newest = max((str(entry.get("last_activity", "")) for entry in (*kernels, *terminals)), default="")
        before, self._active = self._active, newest
        works = any(entry.get("execution_state") == "busy" for entry in kernels)
        return not works and newest == before


def main() -> int:
    """Serve JupyterLab until the task is killed."""
    task = _serving.served("notebook.json", "det notebook start")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        stop(
            f"the training environment has no {' and no '.join(missing)} (interpreter {sys.executable}).\n"
            "Install it there, on each worker that should run notebooks: pip install jupyterlab"
        )
    # Not beside the working directory, which may be any folder of the host (`work_dir`).
    own = info_directory().parent / "jupyter"
    variables = {**os.environ, **folders(own), "JUPYTER_TOKEN": task.key}
    own_kernel(own)
    threading.Thread(target=_serving.announce, args=(task,), daemon=True).start()
    if task.order.get("watched"):
        threading.Thread(target=watch, args=(task,), daemon=True).start()
    return _child.run(command(task), variables)


def command(task: Served) -> list[str]:
    """Return JupyterLab's command line. It omits the key, because other users of the host can read it."""
    options = {
        "ServerApp.ip": task.host,
        "ServerApp.port": task.port,
        # A port that is taken must fail: on another one the gateway would not find it.
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": f"/proxy/{task.info.task_id}/",
        "ServerApp.root_dir": Path.cwd(),
        "ServerApp.open_browser": False,
        "ServerApp.allow_remote_access": True,
        "ServerApp.allow_root": hasattr(os, "geteuid") and os.geteuid() == 0,
        # Pages are served from their own origin; the gateway admits their requests by ticket.
        "ServerApp.allow_origin": "*",
        "ServerApp.quit_button": False,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]


def folders(own: Path) -> dict[str, str]:
    """Return directories for Jupyter's files: inside the run, not in a home directory that runs share."""
    parts = {name: own / name for name in ("config", "data", "runtime")}
    for part in parts.values():
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    variables = {f"JUPYTER_{name.upper()}_DIR": str(part) for name, part in parts.items()}
    # Disable requests to external addresses, and the question whether to allow them.
    settings = parts["config"] / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({NEWS: {"fetchNews": "false", "checkForUpdates": False}}))
    # Takes precedence over kernels of the interpreter's environment.
    listed = [str(own / "first"), os.environ.get("JUPYTER_PATH", "")]
    # An empty JUPYTER_PATH must not become an entry, which would mean the working directory.
    return {**variables, "JUPYTER_PATH": os.pathsep.join(filter(None, listed))}


def own_kernel(own: Path) -> None:
    """Write the kernel `python3`, which uses the training interpreter.

    It has no icon, because pages would request it without the ticket it needs.
    """
    folder = own / "first" / "kernels" / "python3"
    folder.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3 (training)", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))


def watch(task: Served) -> None:
    """Report to the master when the notebook becomes idle or active."""
    idleness, was_idle = Idleness(str(task.order.get("idle_type"))), False
    with _serving.session_of(task.info) as session:
        while True:
            time.sleep(POLL_EVERY_S)
            try:
                idle = idleness.is_idle(_list_entries(task, "kernels"), _list_entries(task, "terminals"))
                if idle != was_idle:
                    path = f"/api/v1/notebooks/{task.info.task_id}/report_idle"
                    session.put(path, {"notebookId": task.info.task_id, "idle": idle})
                    was_idle = idle
            except Exception as error:
                logger.debug("cannot determine whether the notebook is idle: %s; trying again", error)


def _list_entries(task: Served, what: str, get: Callable[..., Any] = requests.get) -> Listed:
    address = f"http://{task.host}:{task.port}/proxy/{task.info.task_id}/api/{what}"
    answer = get(address, headers={"Authorization": credential(task.info.session_token)}, timeout=ANSWER_S)
    # A server without terminals answers with 404.
    entries: Listed = answer.json() if answer.ok else []
    return entries


if __name__ == "__main__":
    sys.exit(main())

"""JupyterLab in a task: the program of a NOTEBOOK task.

Reads `notebook.json` in the info directory: `host` to listen at, `idle_type`, whether idleness is `watched`.
Only the gateway can talk to it: each request must bring a key that the two have worked out (`page_key`).
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
from determined.exec import _serving
from determined.exec._serving import Served, logger
from determined.launch import _child
from determined.launch._node import stop

LOOK_EVERY_S = 5.0
ANSWER_S = 30.0
NEWS = "@jupyterlab/apputils-extension:notification"
NEEDED = ("jupyterlab", "ipykernel")
Listed = list[dict[str, Any]]


class Idleness:
    """Whether anybody uses a notebook, as its `notebook_idle_type` says."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._active = ""
        """When something in it was active the last time, as its server says it."""

    def is_idle(self, kernels: Listed, terminals: Listed) -> bool:
        """From what runs in it now.

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
            "Install it there, on each worker that shall run notebooks: pip install jupyterlab"
        )
    own = Path.cwd().parent / "jupyter"
    variables = {**os.environ, **folders(own), "JUPYTER_TOKEN": task.key}
    own_kernel(own)
    threading.Thread(target=_serving.announce, args=(task,), daemon=True).start()
    if task.order.get("watched"):
        threading.Thread(target=watch, args=(task,), daemon=True).start()
    return _child.run(command(task), variables)


def command(task: Served) -> list[str]:
    """The command line of JupyterLab; its key is not in it, as others on the host can read that."""
    options = {
        "ServerApp.ip": task.host,
        "ServerApp.port": task.port,
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": f"/proxy/{task.info.task_id}/",
        "ServerApp.root_dir": Path.cwd(),
        "ServerApp.open_browser": False,
        "ServerApp.allow_remote_access": True,
        "ServerApp.allow_root": hasattr(os, "geteuid") and os.geteuid() == 0,
        # Its pages have an origin of their own, whose requests the gateway lets in by their ticket.
        "ServerApp.allow_origin": "*",
        "ServerApp.quit_button": False,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]


def folders(own: Path) -> dict[str, str]:
    """Where Jupyter keeps what is its own: with the run, and not in a home that runs share."""
    parts = {name: own / name for name in ("config", "data", "runtime")}
    for part in parts.values():
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    variables = {f"JUPYTER_{name.upper()}_DIR": str(part) for name, part in parts.items()}
    # Nothing is asked of addresses elsewhere, and nobody is asked whether it should be.
    settings = parts["config"] / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({NEWS: {"fetchNews": "false", "checkForUpdates": False}}))
    # Before what the environment of the interpreter brings.
    listed = [str(own / "first"), os.environ.get("JUPYTER_PATH", "")]
    return {**variables, "JUPYTER_PATH": os.pathsep.join(filter(None, listed))}


def own_kernel(own: Path) -> None:
    """Write the kernel `python3`: the training interpreter.

    It brings no picture: pages ask for those without the ticket that they would need.
    """
    folder = own / "first" / "kernels" / "python3"
    folder.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3 (training)", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))


def watch(task: Served) -> None:
    """Tell the master whether the notebook is used, whenever that changes."""
    idleness, was_idle = Idleness(str(task.order.get("idle_type"))), False
    with _serving.session_of(task.info) as session:
        while True:
            time.sleep(LOOK_EVERY_S)
            try:
                idle = idleness.is_idle(_asked(task, "kernels"), _asked(task, "terminals"))
                if idle != was_idle:
                    path = f"/api/v1/notebooks/{task.info.task_id}/report_idle"
                    session.put(path, {"notebookId": task.info.task_id, "idle": idle})
                    was_idle = idle
            except Exception as error:
                logger.debug("whether the notebook is idle is not known: %s; trying again", error)


def _asked(task: Served, what: str, get: Callable[..., Any] = requests.get) -> Listed:
    address = f"http://{task.host}:{task.port}/proxy/{task.info.task_id}/api/{what}"
    answer = get(address, headers={"Authorization": credential(task.info.session_token)}, timeout=ANSWER_S)
    # A server without terminals answers 404.
    entries: Listed = answer.json() if answer.ok else []
    return entries


if __name__ == "__main__":
    sys.exit(main())

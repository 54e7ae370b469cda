"""Shows event files of trials: the program of a TENSORBOARD task.

Reads `tensorboard.json` in the info directory: `sources` (a list of `{experiment_id, trial_ids, storage}`),
`args` (further arguments of TensorBoard), `idle_s` (how long it may stay unused), `keyed` (whether the master
sends a key with each request), `apart` (whether others on this host may not read this task's files) and
`roots` (where the platform may read). Files are fetched periodically while the task runs. The master forwards
browser requests.
Source: launchers spec, section 1; REST spec, section 7.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import pathlib
import sys
import tempfile
import threading
import time
from typing import Any

import msgspec

from det_contracts.page_key import credential
from det_contracts.roots import Roots
from determined.core._tensorboard import stored_under
from determined.exec import _serving, _tensorboard_server
from determined.exec._serving import Served
from determined.exec._tensorboard_assets import leads_elsewhere
from determined.launch import _child
from determined.launch._node import stop
from determined.storage import StorageManager
from determined.storage.privileged import fenced

logger = logging.getLogger("determined.exec.tensorboard")
SERVER = _tensorboard_server.__name__
EVERY_S = 10.0
NEVER_S = 10 * 365 * 86400
"""Where the order, of an earlier release, names no time after which an unused TensorBoard ends."""


class Source:
    """The event files of one trial, and the directory they are copied to."""

    def __init__(
        self, manager: StorageManager, stored: str, folder: pathlib.Path, scratch: pathlib.Path
    ) -> None:
        self._manager = manager
        self._scratch = scratch
        self._stored = stored
        self._folder = folder
        self._sizes: dict[str, int] = {}

    def fetch(self) -> int:
        """Copy files that have grown since the last call. Returns their number."""
        try:
            stored = self._manager.list_resources(self._stored)
        except Exception as error:
            logger.debug("nothing at %s: %s", self._stored, error)
            return 0
        grown = {name for name, size in stored.items() if size and self._sizes.get(name) != size}
        if grown:
            # Copy a grown file to a temporary directory first, then replace the old one.
            with tempfile.TemporaryDirectory(dir=self._scratch) as scratch:
                self._manager.download(self._stored, scratch, lambda name: name in grown)
                for name in grown:
                    self._show(pathlib.Path(scratch) / name, name)
            self._sizes.update({name: stored[name] for name in grown})
        return len(grown)

    def _show(self, copy: pathlib.Path, name: str) -> None:
        if reason := leads_elsewhere(copy):
            logger.warning("%s/%s is not shown: %s", self._stored, name, reason)
            return
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy.replace(target)


def sources(
    order: dict[str, Any], cluster_id: str, root: pathlib.Path, scratch: pathlib.Path
) -> list[Source]:
    """Return one source per trial."""
    wanted = []
    for folder in (root, scratch):
        folder.mkdir(exist_ok=True)
    roots = msgspec.convert(order["roots"], Roots)
    for source in order["sources"]:
        try:
            manager = fenced(source["storage"], roots)
        except ValueError as error:
            logger.error("experiment %s is not shown: %s", source["experiment_id"], error)
            continue
        for trial in source["trial_ids"]:
            place = stored_under(cluster_id, source["experiment_id"], trial)
            folder = root / f"exp{source['experiment_id']}" / f"trial{trial}"
            wanted.append(Source(manager, place, folder, scratch))
    return wanted


def main() -> int:
    """Fetch files and serve them until the task is killed, or nobody has looked at them for `idle_s`."""
    task = _serving.served("tensorboard.json", "det tensorboard start ID")
    if importlib.util.find_spec("tensorboard") is None:
        stop(
            f"the training environment has no TensorBoard (interpreter {sys.executable}).\n"
            "Install it there: pip install tensorboard"
        )
    # In the task's working directory, which is removed with the run.
    root, scratch = pathlib.Path("shown").absolute(), pathlib.Path("fetched").absolute()
    order = task.order
    fetch_all(all_sources := sources(order, task.info.cluster_id, root, scratch))
    # The first copy is made above, before the server starts: an empty page would look like lost data.
    threading.Thread(target=_fetch, args=(all_sources,), daemon=True).start()
    threading.Thread(target=_serving.announce, args=(task,), daemon=True).start()
    return _child.run(
        [
            *[sys.executable, "-m", SERVER, str(order.get("idle_s") or NEVER_S)],
            *["--logdir", str(root), "--host", task.host, "--port", str(task.port)],
            *["--path_prefix", f"/proxy/{task.info.task_id}", "--reload_interval", "5"],
            *order.get("args", []),
            # Its fast loader answers everybody on this host.
            *(["--load_fast", "false"] if order.get("apart") else []),
        ],
        variables(task),
    )


def variables(task: Served) -> dict[str, str]:
    """Return the environment of the server: with the key that requests must carry, if the master sends it."""
    if not task.order.get("keyed"):
        return dict(os.environ)
    return {**os.environ, _tensorboard_server.CREDENTIAL: credential(task.info.session_token)}


def fetch_all(all_sources: list[Source]) -> None:
    """Copy files that have grown. A failure, for example during a concurrent upload, is retried next time."""
    for source in all_sources:
        try:
            source.fetch()
        except Exception as error:
            logger.warning("event files could not be fetched: %s; trying again", error)


def _fetch(all_sources: list[Source]) -> None:
    while True:
        time.sleep(EVERY_S)
        fetch_all(all_sources)


if __name__ == "__main__":
    sys.exit(main())

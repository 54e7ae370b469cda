"""TensorBoard files of a trial and their upload to storage (core API spec, section 11)."""

import enum
import logging
import os
import pathlib
import tempfile
from collections.abc import Callable

from determined.storage import StorageManager
from determined.storage.listing import local_path

logger = logging.getLogger("determined.core")

Selector = Callable[[pathlib.Path], bool]
Mangler = Callable[[pathlib.Path, int], pathlib.Path]


class TensorboardMode(enum.Enum):
    """Who handles the TensorBoard files.

    Example:
        ```python
        with det.core.init(tensorboard_mode=det.core.TensorboardMode.MANUAL) as core_context:
            writer = SummaryWriter(log_dir=str(core_context.train.get_tensorboard_path()))
            writer.add_histogram("weights", model.weight, global_step=100)
            writer.flush()
            core_context.train.upload_tensorboard_files()
        ```
    """

    AUTO = "AUTO"
    """The platform writes reports as events and uploads files every ten seconds and at the end."""
    MANUAL = "MANUAL"
    """The script uploads files with `upload_tensorboard_files`."""


def everything(path: pathlib.Path) -> bool:
    """Select every file."""
    return True


def as_it_is(path: pathlib.Path, rank: int) -> pathlib.Path:
    """Store a file under its own name."""
    return path


def tensorboard_path(allocation_id: str) -> pathlib.Path:
    """Return the directory for this process's event files, without creating it."""
    # torch ranks share one directory. Only Horovod passes its rank this way.
    rank = os.environ.get("HOROVOD_RANK") or "0"
    # Inside the run's directory, which is removed with the run: another cluster on this host, now or earlier,
    # may use the same allocation id.
    info = os.environ.get("DET_INFO_DIR")
    folder = pathlib.Path(info).parent if info else pathlib.Path(tempfile.gettempdir())
    return folder / f"tensorboard-{allocation_id}-{rank}"


def stored_under(cluster_id: str, experiment_id: int, trial_id: int) -> str:
    """Return the path of a trial's event files within checkpoint storage."""
    return f"{stored_under_experiment(cluster_id, experiment_id)}/trial/{trial_id}"


def stored_under_experiment(cluster_id: str, experiment_id: int) -> str:
    """Return the path of the event files of all trials of an experiment."""
    return f"{cluster_id}/tensorboard/experiment/{experiment_id}"


class TensorboardUpload:
    """Uploads files from one directory to storage, skipping files that have not changed."""

    def __init__(self, storage: StorageManager, base: pathlib.Path, target: str, rank: int) -> None:
        self._storage = storage
        self._base = base
        self._target = target
        self._rank = rank
        self._sent: dict[pathlib.Path, tuple[int, int]] = {}

    def send(self, selector: Selector, mangler: Mangler) -> None:
        """Upload the selected files that changed since the last call.

        `selector` gets absolute paths. `mangler` maps the relative path and the rank to the stored name.
        """
        changed = self._changed(selector)
        if not changed:
            return
        with tempfile.TemporaryDirectory(prefix="tensorboard-upload-") as scratch:
            for path in changed:
                name = mangler(path.relative_to(self._base), self._rank).as_posix()
                link = local_path(scratch, name)
                link.parent.mkdir(parents=True, exist_ok=True)
                # A link lets one upload store files under other names without copying them.
                link.symlink_to(path)
            self._storage.upload(scratch, self._target, checksums=False)
        # With the times and sizes from before the upload: what was written meanwhile is sent by the next
        # call.
        self._sent.update(changed)
        logger.debug("uploaded %d TensorBoard files", len(changed))

    def _changed(self, selector: Selector) -> dict[pathlib.Path, tuple[int, int]]:
        changed = {}
        for path in sorted(p.absolute() for p in self._base.rglob("*") if p.is_file()):
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if self._sent.get(path) != stamp and selector(path):
                changed[path] = stamp
        return changed

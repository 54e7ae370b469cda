"""Downloads checkpoints, with a progress bar for large ones (client spec, sections 5 and 6)."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from determined.cli import formatting, output
from determined.cli.failure import Failure
from determined.cli.grammar import arg

if TYPE_CHECKING:
    from determined.experimental._checkpoint import Checkpoint

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def yes_or_no(text: str) -> bool:
    """Parse a boolean in common spellings."""
    if text.lower() not in _BOOLEANS:
        raise argparse.ArgumentTypeError(f"'{text}' is neither true nor false")
    return _BOOLEANS[text.lower()]


MODES = ("direct", "master", "auto")
QUIET = arg("-q", "--quiet", action="store_true", help="print only the path")
MODE = arg("--mode", choices=MODES, default="auto", help="from the storage, through the master, or either")
SORT = (
    arg("--sort-by", metavar="METRIC", help="a validation metric instead of the searcher's"),
    arg("--smaller-is-better", type=yes_or_no, metavar="BOOL", help="the direction of --sort-by"),
)
_LOOK_EVERY_S = 0.2
_BLOCK_BYTES = 512


def fetch(checkpoint: Checkpoint, path: Path | None, mode: str, quiet: bool) -> str:
    """Download a checkpoint and return its path. Raises `Failure` with the reason."""
    from determined import errors
    from determined.experimental._enums import DownloadMode

    target = path or Path("checkpoints", checkpoint.uuid)
    expected_errors = (
        errors.NoDirectStorageAccess,
        errors.CheckpointStateException,
        errors.CheckpointNotFound,
    )
    with _bar(target, sum(checkpoint.resources.values()), hidden=quiet):
        try:
            return checkpoint.download(target, DownloadMode(mode))
        except (*expected_errors, OSError, ValueError, NotImplementedError) as error:
            raise Failure(str(error)) from error


def show(downloaded: Sequence[tuple[Checkpoint, str]], quiet: bool) -> None:
    """Print what was downloaded, and where."""
    if quiet:
        for _, path in downloaded:
            print(path)
        return
    print("Local checkpoint path:")
    for _, path in downloaded:
        print(path)
    print()
    headers = ["Experiment ID", "Trial ID", "Steps Completed", "Report Time", "Checkpoint UUID"]
    headers += ["Validation Metrics", "Metadata", "Size"]
    output.table(headers, [_row(checkpoint) for checkpoint, _ in downloaded])


def _row(checkpoint: Checkpoint) -> list[object]:
    training = checkpoint.training
    metrics = training.validation_metrics.get("avgMetrics") if training else None
    return [
        training.experiment_id if training else None,
        training.trial_id if training else None,
        checkpoint.metadata.get("steps_completed"),
        formatting.when(checkpoint.report_time),
        checkpoint.uuid,
        formatting.compact(metrics),
        formatting.compact(checkpoint.metadata),
        formatting.size(sum(checkpoint.resources.values())),
    ]


@contextlib.contextmanager
def _bar(target: Path, total: int, hidden: bool) -> Iterator[None]:
    """Show a progress bar on a terminal, based on the bytes on disk so far."""
    # On stderr: with --quiet and in pipes, only the path is on stdout.
    if hidden or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TransferSpeedColumn

    done = threading.Event()

    def watch(progress: Progress, task: TaskID) -> None:
        while not done.wait(_LOOK_EVERY_S):
            progress.update(task, completed=min(arrived(target), total))

    columns = (f"Downloading {target.name}", BarColumn(), DownloadColumn(binary_units=True))
    with Progress(*columns, TransferSpeedColumn(), console=Console(stderr=True), transient=True) as progress:
        watcher = threading.Thread(target=watch, args=(progress, progress.add_task("", total=total)))
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def arrived(target: Path) -> int:
    """Return the bytes on disk, including partial files whose full length is already allocated."""
    scratch = target.parent.glob(f".{target.name}.*") if target.parent.is_dir() else ()
    size = 0
    for path in (file for place in (target, *scratch) for file in place.rglob("*")):
        with contextlib.suppress(OSError):
            # Counted in blocks on the disk: a file that arrives in ranges has its full size early, with
            # holes.
            status = path.stat()
            size += min(status.st_size, status.st_blocks * _BLOCK_BYTES) if path.is_file() else 0
    return size

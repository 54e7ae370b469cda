"""Uploads in a separate process, which leaves the interpreter lock and the CPU to training.

The process gets its job on standard input and answers on standard output. It ends together with the process
that started it: a job it has not answered is not stored.
"""

import contextlib
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from typing import Any

from determined.storage.base import StorageManager

NICE = 10
"""Priority of the process: it gets a tenth of a CPU core that training keeps busy, and all of an idle one.

Not the lowest priority, because a preempted run waits for it on a machine shared with other jobs. As a batch
job it does not interrupt running processes when it becomes ready, but waits for its turn.
"""
# Set the path first, so that it finds the same modules, and the priority before loading any of them.
_BOOT = """
import os, sys
sys.path[:] = sys.argv[2:]
if hasattr(os, "nice"):
    os.nice(int(sys.argv[1]))
try:
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
except (AttributeError, OSError):
    pass
from determined.storage.transfer_process import serve
serve()
"""


class SeparateProcess:
    """A storage whose uploads run in a separate process."""

    def __init__(self, storage: StorageManager) -> None:
        self._storage = storage

    def upload(self, src: "str | os.PathLike[str]", dst: str, paths: Iterable[str] | None = None) -> None:
        """Upload like the storage. Raises RuntimeError if the process dies."""
        self._run("upload", os.path.abspath(src), dst, paths)

    def post_store_path(self, src: pathlib.Path, dst: str, paths: Iterable[str] | None = None) -> None:
        """Store like the storage. Nothing is moved if files are written in place."""
        if self._storage.store_path_is_direct_access():
            self._storage.post_store_path(src, dst, paths)
        else:
            self._run("post_store_path", pathlib.Path(os.path.abspath(src)), dst, paths)

    def _run(self, method: str, src: Any, dst: str, paths: Iterable[str] | None) -> None:
        order = pickle.dumps((self._storage, method, (src, dst, None if paths is None else list(paths))))
        command = [sys.executable, "-c", _BOOT, str(NICE), *sys.path]
        # The answer goes to a file: the end of a pipe would not be detected if training forks a data-loading
        # process at this moment, which inherits the pipe.
        with tempfile.TemporaryFile() as answer:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=answer)
            assert process.stdin is not None  # noqa: S101 - stdin is piped; this is for mypy
            # If the process cannot read the job, it will not answer either.
            with contextlib.suppress(BrokenPipeError), process:
                process.stdin.write(order)
                process.stdin.flush()
                process.wait()
            status = process.wait()
            answer.seek(0)
            content = answer.read()
        if not content:
            raise RuntimeError(f"the process that was storing {dst} ended {_how(status)}")
        failure = pickle.loads(content)
        if failure is not None:
            raise failure


def in_separate_process(storage: StorageManager) -> "SeparateProcess | StorageManager":
    """Return a storage whose uploads run in a separate process, or the same one if that is impossible."""
    # A class of the script may be in `__main__`, which is another module there.
    ours = type(storage).__module__.startswith("determined.storage.")
    return SeparateProcess(storage) if ours and sys.executable else storage


def _how(status: int) -> str:
    if status >= 0:
        return f"with exit code {status}"
    hint = " (out of memory?)" if -status == signal.SIGKILL else ""
    return f"by signal {-status}{hint}"


def serve() -> None:
    """Run one job. Called in the separate process."""
    answer = os.fdopen(os.dup(1), "wb")
    # Keep output that libraries print out of the answer.
    os.dup2(2, 1)
    for number in (signal.SIGINT, signal.SIGTERM):
        # The parent process gets these signals too, and decides.
        signal.signal(number, signal.SIG_IGN)
    storage, method, arguments = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_starter, daemon=True).start()
    failure: BaseException | None = None
    try:
        getattr(storage, method)(*arguments)
    except BaseException as error:
        failure = error
    answer.write(_portable(failure))
    answer.flush()
    # Not by the usual end, which fails because the other thread holds the lock of standard input.
    os._exit(0)


def _portable(failure: BaseException | None) -> bytes:
    try:
        pickled = pickle.dumps(failure)
        # Some exceptions can be pickled, but not be made again: their `__init__` takes other arguments.
        pickle.loads(pickled)
    except Exception:
        pickled = pickle.dumps(RuntimeError(f"{type(failure).__name__}: {failure}"))
    return pickled


def _end_with_starter() -> None:
    sys.stdin.buffer.read()
    os._exit(1)

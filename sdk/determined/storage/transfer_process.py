"""Transfers in a process of their own, which leaves Python's lock and the processor to training.

The process is told what to do on its standard input and answers on its standard output. It ends with the
process that started it: what it has not answered for is not stored.
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
"""Of the process: it gets a tenth of a processor that training keeps busy, and all of one that is idle.

Not the lowest: a preempted run waits for it, beside strangers on the same machine. As a batch job it does
not interrupt whoever runs when it could go on, but waits for its turn.
"""
# The path first, so that it finds the same modules; the priority before any of them is loaded.
_BOOT = f"""
import os, sys
sys.path[:] = sys.argv[1:]
if hasattr(os, "nice"):
    os.nice({NICE})
try:
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
except (AttributeError, OSError):
    pass
from determined.storage.transfer_process import serve
serve()
"""


class Apart:
    """A storage whose uploads run in a process of their own."""

    def __init__(self, storage: StorageManager) -> None:
        self._storage = storage

    def upload(self, src: "str | os.PathLike[str]", dst: str, paths: Iterable[str] | None = None) -> None:
        """As the storage does. RuntimeError when the process ends on the way."""
        self._run("upload", os.path.abspath(src), dst, paths)

    def post_store_path(self, src: pathlib.Path, dst: str, paths: Iterable[str] | None = None) -> None:
        """As the storage does; nothing is moved where files are written in their place."""
        if self._storage.store_path_is_direct_access():
            self._storage.post_store_path(src, dst, paths)
        else:
            self._run("post_store_path", pathlib.Path(os.path.abspath(src)), dst, paths)

    def _run(self, method: str, src: Any, dst: str, paths: Iterable[str] | None) -> None:
        order = pickle.dumps((self._storage, method, (src, dst, None if paths is None else list(paths))))
        command = [sys.executable, "-c", _BOOT, *sys.path]
        # The answer lies in a file: the end of a pipe cannot be told while a process that training happens to
        # fork just now, to load data, has it open, too.
        with tempfile.TemporaryFile() as answer:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=answer)
            assert process.stdin is not None  # noqa: S101 - what is piped has an end; this is for mypy
            # What it cannot take it does not answer, either.
            with contextlib.suppress(BrokenPipeError), process:
                process.stdin.write(order)
                process.stdin.flush()
                process.wait()
            status = process.wait()
            answer.seek(0)
            content = answer.read()
        if not content:
            raise RuntimeError(f"the process that was to store {dst} ended {_how(status)}")
        failure = pickle.loads(content)
        if failure is not None:
            raise failure


def apart(storage: StorageManager) -> "Apart | StorageManager":
    """A storage like this one whose uploads run apart; the same where another process cannot make it."""
    ours = type(storage).__module__.startswith("determined.storage.")
    return Apart(storage) if ours and sys.executable else storage


def _how(status: int) -> str:
    if status >= 0:
        return f"with exit code {status}"
    hint = " (was memory short?)" if -status == signal.SIGKILL else ""
    return f"by signal {-status}{hint}"


def serve() -> None:
    """Carry out one order; called in the process itself."""
    answer = os.fdopen(os.dup(1), "wb")
    # What a library prints is no answer.
    os.dup2(2, 1)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Whoever started it hears them, too, and decides.
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
    os._exit(0)


def _portable(failure: BaseException | None) -> bytes:
    try:
        pickled = pickle.dumps(failure)
        pickle.loads(pickled)
    except Exception:
        pickled = pickle.dumps(RuntimeError(f"{type(failure).__name__}: {failure}"))
    return pickled


def _end_with_starter() -> None:
    sys.stdin.buffer.read()
    os._exit(1)

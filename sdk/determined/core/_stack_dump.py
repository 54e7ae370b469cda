"""`kill -USR1 <pid>` shows where a script is."""

import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any

_previous: Any = None


def _dump(signum: int, frame: FrameType | None) -> None:
    print("stack of the main thread, asked for by SIGUSR1:", file=sys.stderr)
    traceback.print_stack(frame, file=sys.stderr)
    sys.stderr.flush()
    if callable(_previous):
        _previous(signum, frame)


def install_stack_dump() -> None:
    """Print the main thread's stack on SIGUSR1, before any handler installed earlier.

    Does nothing outside of the main thread and where the signal does not exist.
    """
    global _previous
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGUSR1"):
        return
    current = signal.getsignal(signal.SIGUSR1)
    if current is not _dump:
        _previous = current
        signal.signal(signal.SIGUSR1, _dump)

"""Shows where a script is, on `kill -USR1 <pid>`."""

import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any

_previous: Any = None


def _dump(signum: int, frame: FrameType | None) -> None:
    print("stack of the main thread, requested by SIGUSR1:", file=sys.stderr)
    traceback.print_stack(frame, file=sys.stderr)
    sys.stderr.flush()
    if callable(_previous):
        _previous(signum, frame)


def install_stack_dump() -> None:
    """Print the main thread's stack on SIGUSR1, then call any handler installed earlier.

    Does nothing outside the main thread, or if the signal does not exist.
    """
    global _previous
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGUSR1"):
        return
    current = signal.getsignal(signal.SIGUSR1)
    # A script may call `init` several times. A handler that calls itself would never end.
    if current is not _dump:
        _previous = current
        signal.signal(signal.SIGUSR1, _dump)

"""How long a call of the script waits for the cluster: as long as it takes, or a while, once in an outage."""

import concurrent.futures
import logging
from concurrent.futures import Future
from typing import Any, TypeVar

from determined.transport.bus_thread import BusThread

T = TypeVar("T")
logger = logging.getLogger("determined.transport")

TOLD_EVERY_S = 30.0
"""How often a script that waits says what it waits for."""


def wait_for(coming: "Future[T]", what: str, thread: BusThread) -> T:
    """Wait for what the script cannot do without; RuntimeError when the thread that brings it has ended."""
    while True:
        thread.check()
        if concurrent.futures.wait([coming], TOLD_EVERY_S).done:
            return coming.result()
        logger.warning("waiting for the cluster: %s%s", what, thread.trouble)


class Patience:
    """Waits for what the script can do without: a while, and not again before that has come.

    So an outage costs a training loop that while once, however often it calls.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._overdue: Future[Any] | None = None

    def lasts(self, coming: "Future[Any]") -> bool:
        """Whether it has come in time."""
        exhausted = self._overdue is not None and not self._overdue.done()
        concurrent.futures.wait([coming], 0 if exhausted else self._seconds)
        if coming.done():
            return True
        self._overdue = self._overdue if exhausted else coming
        return False

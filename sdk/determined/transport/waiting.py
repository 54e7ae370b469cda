"""How long a script's call waits for the cluster: indefinitely, or for a limited time once per outage."""

import concurrent.futures
import logging
from concurrent.futures import Future
from typing import Any, TypeVar

from determined.transport.bus_thread import BusThread

T = TypeVar("T")
logger = logging.getLogger("determined.transport")

TOLD_EVERY_S = 30.0
"""How often a waiting script logs what it is waiting for."""


def wait_for(coming: "Future[T]", what: str, thread: BusThread) -> T:
    """Wait for something the script cannot do without. Raises RuntimeError if the thread has ended."""
    while True:
        thread.check()
        if concurrent.futures.wait([coming], TOLD_EVERY_S).done:
            return coming.result()
        logger.warning("waiting for the cluster: %s%s", what, thread.trouble)


class Patience:
    """Waits a limited time for something optional, and not again until that has arrived.

    An outage thus delays a training loop only once, however often it calls.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._overdue: Future[Any] | None = None

    def lasts(self, coming: "Future[Any]") -> bool:
        """Whether it arrived in time."""
        exhausted = self._overdue is not None and not self._overdue.done()
        # Not `result(timeout)`, whose TimeoutError could also be the outcome itself.
        concurrent.futures.wait([coming], 0 if exhausted else self._seconds)
        if coming.done():
            return True
        self._overdue = self._overdue if exhausted else coming
        return False

"""Uploading a checkpoint while training continues."""

import logging
import threading
from collections.abc import Callable

from determined.core._outcome import error_text

logger = logging.getLogger("determined.core")

_TOLD_EVERY_S = 10.0


class BackgroundUpload:
    """Runs at most one checkpoint upload in the background."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._storage_id = ""
        self._failure: BaseException | None = None

    def begin(self, storage_id: str, complete: Callable[[], None]) -> None:
        """Run `complete` in a thread. The interpreter waits for the thread at exit."""
        self.wait()
        self._storage_id = storage_id

        def run() -> None:
            try:
                complete()
            # Also SystemExit: a thread would lose it, and the upload would count as done.
            except BaseException as error:
                logger.error("checkpoint %s could not be stored: %s", storage_id, error_text(error))
                self._failure = error

        self._thread = threading.Thread(target=run, name="determined-checkpoint")
        self._thread.start()

    def settle(self) -> None:
        """Wait until no upload is running. A failure is kept for `wait`."""
        while self._thread is not None:
            # In parts, so that a script that seems to hang says what it is waiting for.
            self._thread.join(_TOLD_EVERY_S)
            if self._thread.is_alive():
                logger.info("waiting until checkpoint %s is stored", self._storage_id)
            else:
                self._thread = None

    def wait(self) -> None:
        """Wait until no upload is running. If it failed, raise that once."""
        self.settle()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise RuntimeError(
                f"checkpoint {self._storage_id} was not stored in the background: {error_text(failure)}"
            ) from failure

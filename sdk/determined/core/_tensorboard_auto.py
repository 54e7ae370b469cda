"""Automatic TensorBoard support: writes reports as events and uploads files periodically."""

import contextlib
import logging
import pathlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from determined.core._outcome import error_text
from determined.core._tensorboard import TensorboardUpload, as_it_is, everything
from determined.core._tensorboard_events import EventFile
from determined.transport.protocol import MetricReport

logger = logging.getLogger("determined.core")

PERIOD_S = 10.0
_PREFIX = "Determined/"
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

Scalars = dict[str, float]


def _scalars(metrics: Mapping[str, Any], prefix: str) -> Scalars:
    """Return the numeric metrics by tag. In reports, non-finite numbers are encoded as strings."""
    scalars: Scalars = {}
    for name, value in metrics.items():
        number = _NOT_FINITE.get(value) if isinstance(value, str) else value
        if isinstance(number, int | float) and not isinstance(number, bool):
            tag = name if not prefix or name.startswith(prefix.rstrip("_")) else prefix + name
            scalars[_PREFIX + tag] = number
    return scalars


def events_of(report: MetricReport) -> Iterator[tuple[int, Scalars]]:
    """Yield (step, scalars) for a training or validation report (core API spec, section 11).

    Metrics of single batches have their own steps and replace the average of the same name.
    """
    if report.group not in ("training", "validation"):
        return
    scalars = _scalars(report.metrics, "val_" if report.group == "validation" else "")
    batches = report.batch_metrics or []
    for n, batch in enumerate(batches):
        if of_batch := _scalars(batch, ""):
            yield report.steps_completed - len(batches) + n, of_batch
            scalars = {tag: value for tag, value in scalars.items() if tag not in of_batch}
    if scalars:
        yield report.steps_completed, scalars


class AutomaticTensorboard:
    """Writes the chief's reports as events, and uploads new files periodically and at the end.

    Failures are only logged as warnings, because training does not depend on it.
    """

    def __init__(self, directory: pathlib.Path, upload: TensorboardUpload) -> None:
        self._directory = directory
        self._upload = upload
        self._waiting: deque[tuple[float, MetricReport]] = deque()
        self._file: EventFile | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def start(self) -> None:
        """Start watching the directory. Calling it twice is allowed."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="determined-tensorboard", daemon=True)
            self._thread.start()

    def add(self, report: MetricReport) -> None:
        """Queue a report and return immediately."""
        # The time of the report: the thread may write the event ten seconds later.
        self._waiting.append((time.time(), report))
        if self._thread is None:
            self.start()

    def close(self) -> None:
        """Upload the remaining files. Calling it twice is allowed."""
        self._closing.set()
        if self._thread is None:
            return
        while self._thread.is_alive():
            self._thread.join(PERIOD_S)
            if self._thread.is_alive():
                logger.info("waiting until TensorBoard files are stored")

    def _run(self) -> None:
        over = False
        while not over:
            over = self._closing.wait(PERIOD_S)
            try:
                self._write()
                self._upload.send(everything, as_it_is)
            except Exception as error:
                # The next round tries again. Training must not fail because of charts.
                logger.warning("TensorBoard files could not be stored: %s", error_text(error))
            else:
                # Removed only if everything was uploaded; otherwise the files are the only copy.
                if over:
                    self._remove()
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        while self._waiting:
            when, report = self._waiting.popleft()
            for step, scalars in events_of(report):
                if self._file is None:
                    self._file = EventFile(self._directory)
                self._file.write(when, step, scalars)
        if self._file is not None:
            self._file.flush()

    def _remove(self) -> None:
        """Remove our event file, to leave nothing on a host that runs many trials.

        The script's files are kept.
        """
        if self._file is not None:
            self._file.close()
            self._file.path.unlink(missing_ok=True)
            self._file = None
            # Other files may be those of the script, and stay.
            with contextlib.suppress(OSError):
                self._directory.rmdir()

"""Logs of the platform itself: structlog, for a person or as JSON.

Level and colours can be changed while the process runs, of all its loggers at once: an administrator states
it as an event, which every process that folds the log hears, and looks for when it starts.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Mapping
from typing import Any, TextIO, cast

import structlog

from det_contracts import subjects
from det_contracts.events.gateway import LoggingSet
from services.kit.log import Log
from services.kit.records import read_event


class LossyStream:
    """A stream that drops what it cannot write: on a full disk, a log line must not crash the program."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, or drop it."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or drop what was written."""
        with contextlib.suppress(OSError):
            self._stream.flush()


class LogOutput:
    """The current log level and format. Loggers keep their processors, so these read it on every line."""

    def __init__(self) -> None:
        self.level = "INFO"
        self.color = False
        self._min_level = logging.INFO
        self._renderer: structlog.typing.Processor = structlog.dev.ConsoleRenderer(colors=False)

    def apply_settings(self, form: str, level: str) -> None:
        """Use the settings of this process."""
        self._renderer = structlog.processors.JSONRenderer() if form == "json" else self._console(False)
        self._set_level(level)

    def apply(self, event: LoggingSet) -> None:
        """Apply a change made by an administrator."""
        if event.part == "level":
            # A later version may know levels that this one does not.
            if event.value in logging.getLevelNamesMapping():
                self._set_level(event.value)
            return
        self.color = event.value == "on"
        # Colours in JSON would be control characters in the texts of whoever reads it.
        if not isinstance(self._renderer, structlog.processors.JSONRenderer):
            self._renderer = self._console(self.color)

    def _set_level(self, level: str) -> None:
        self.level = level.upper()
        self._min_level = logging.getLevelNamesMapping()[self.level]

    @staticmethod
    def _console(color: bool) -> structlog.typing.Processor:
        return structlog.dev.ConsoleRenderer(colors=color)

    def drop_below_level(self, logger: Any, method: str, line: Any) -> Any:
        """Processor: drop lines below the current level."""
        if structlog.processors.NAME_TO_LEVEL.get(method, logging.CRITICAL) < self._min_level:
            raise structlog.DropEvent
        return line

    def render(self, logger: Any, method: str, line: Any) -> str | bytes | Mapping[str, Any]:
        """Processor: format a line."""
        return cast("str", self._renderer(logger, method, line))


OUTPUT = LogOutput()
"""The settings of this process."""


def configure(form: str, level: str, **bound: object) -> None:
    """Set up structlog for this process; `bound` goes on every line."""
    OUTPUT.apply_settings(form, level)
    structlog.configure(
        processors=[
            # First, so that a dropped line costs nothing else.
            OUTPUT.drop_below_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            OUTPUT.render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, LossyStream(sys.stderr))),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**bound)


async def apply_stored_settings(journal: Log) -> None:
    """Apply the newest changes made before this process started, which its snapshot does not repeat."""
    for part in ("level", "color"):
        stored = await journal.last(subjects.control("gateway.logging.set", part))
        event = read_event(stored).event if stored is not None else None
        if isinstance(event, LoggingSet):
            OUTPUT.apply(event)

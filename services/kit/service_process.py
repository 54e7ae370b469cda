"""Start and end of a service process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from services.kit import logging, process, tracing
from services.kit.settings import BadSettings, ServiceSettings, load

if TYPE_CHECKING:
    from services.kit.spans import Tracer

STOP_PATIENCE_S = 10.0
"""Seconds that a service may take to exit after it was asked to."""
Settings = TypeVar("Settings", bound=ServiceSettings)
Serve = Callable[[Any, "Tracer | None"], Coroutine[Any, Any, None]]
"""The main coroutine of a service, given its settings. Runs until it is cancelled."""

log = structlog.get_logger()


def run_service(owner: str, kind: type[Settings], serve: Serve) -> None:
    """Run a service until SIGTERM or SIGINT, with settings of this kind from the environment.

    Exits with status 2 if the settings are invalid.
    """
    try:
        settings = load(kind, os.environ)
        tracer = tracing.configure(owner, os.environ)
    except BadSettings as error:
        sys.exit(f"{owner}: {error}")
    logging.configure(settings.log_format, settings.log_level, service=owner)
    process.run(_run_until_signal(serve(settings, tracer)))


async def _run_until_signal(serving: Coroutine[Any, Any, None]) -> int:
    """Run until stopped and return the exit status."""
    work = asyncio.ensure_future(serving)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        work.cancel()
        loop.call_later(STOP_PATIENCE_S, _force_exit)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await work
    except asyncio.CancelledError:
        log.info("service.stopped")
    except (Exception, BaseExceptionGroup) as failure:
        errors = process.flatten_errors(failure)
        if errors and all(isinstance(error, process.StartAgain) for error in errors):
            log.info("service.starts_again", reason=str(errors[0]))
            process.exit_now(process.START_AGAIN)
        for error in errors:
            _log_failure(error)
        # Exit at once: leftover work on the loop must not delay the restart.
        process.exit_now(2 if any(isinstance(error, BadSettings) for error in errors) else 1)
    return 0


def _log_failure(error: BaseException) -> None:
    if isinstance(error, BadSettings):
        # The text says what is wrong; a traceback would not help.
        log.critical("settings.refused", error=str(error))
    else:
        log.critical("service.failed", error=str(error) or repr(error), exc_info=error)


def _force_exit() -> None:
    """Exit although the cancellation may have been lost; whatever is not saved is folded again."""
    log.warning("service.stopped_anyway", within_s=STOP_PATIENCE_S)
    process.exit_now(0)

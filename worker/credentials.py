"""Credentials that a worker creates: its own, if it has the signing key, and renewed ones for scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import structlog

from services.kit.credentials import mint_worker
from services.kit.files import write_atomic
from worker.run import Run
from worker.run_setup import Preparer
from worker.settings import WorkerSettings
from worker.task_files import SigningKey

FILE = "worker.creds"
CA_CHECK_INTERVAL_S = 12 * 3600.0
"""How often CA certificates are checked when credentials do not expire, in seconds."""

log = structlog.get_logger()


def add_own_credentials(settings: WorkerSettings) -> WorkerSettings:
    """The settings with the worker's own credentials, created if none are configured. Raises `OSError`."""
    if settings.nats_credentials is not None or settings.worker_signing is None:
        return settings
    signing = msgspec.json.decode(settings.worker_signing.read_bytes(), type=SigningKey)
    path = settings.worker_home / FILE
    write_atomic(path, mint_worker(signing.seed, signing.account, settings.worker_id).encode())
    return replace(settings, nats_credentials=path)


async def renew(settings: WorkerSettings, preparer: Preparer, runs: Mapping[str, Run]) -> None:
    """Renew the credentials and CA certificates of running tasks, until cancelled.

    Runs at half the lifetime of scripts' credentials, and once at startup, because the age of existing ones
    is unknown.
    """
    interval_s = settings.script_credentials_s / 2 or CA_CHECK_INTERVAL_S
    while True:
        for run in list(runs.values()):
            if run.order.briefing is None or not run.order.started_at or run.done.is_set():
                continue
            try:
                await asyncio.to_thread(preparer.renew, run.folder, run.order.briefing)
            except OSError as error:
                log.warning("credentials.not_renewed", allocation=run.id, error=str(error))
        await asyncio.sleep(interval_s)

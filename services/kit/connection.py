"""The connection to the broker, for services and workers alike."""

from __future__ import annotations

import nats
import structlog
from nats.aio.client import Client

from services.kit.settings import ServiceSettings

log = structlog.get_logger()


async def connect(settings: ServiceSettings, name: str) -> Client:
    """A connection to the broker that comes back by itself, however long the broker is away."""

    async def on_error(error: Exception) -> None:
        log.warning("broker.error", error=str(error) or repr(error))

    credentials = str(settings.nats_credentials) if settings.nats_credentials else None
    return await nats.connect(
        settings.nats_url.split(","),
        name=name,
        user_credentials=credentials,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,
        error_cb=on_error,
    )

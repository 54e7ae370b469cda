"""The connection to the broker, for services and workers alike."""

from __future__ import annotations

import asyncio
import contextlib

import structlog
from nats.aio.client import Client

from services.kit import client, tls
from services.kit.settings import ServiceSettings

LOOK_EVERY_S = 0.5
PING_EVERY_S = 3
"""A broker that vanished without a word is given up after three of these."""
CLOSE_S = 2.0

log = structlog.get_logger()


class ClosedForGood(Exception):
    """The broker has shown this connection the door; the client does not come back from that."""


async def connect(settings: ServiceSettings, name: str, inbox: str = "_INBOX") -> Client:
    """A connection to the broker that comes back by itself, however long the broker is away.

    `inbox` begins the names of all that it hears.
    """

    async def on_error(error: Exception) -> None:
        log.warning("broker.error", error=str(error) or repr(error))

    credentials = str(settings.nats_credentials) if settings.nats_credentials else None
    return await client.connect(
        settings.nats_url.split(","),
        **tls.broker_options(settings.nats_url, settings.tls_ca),
        name=name,
        inbox_prefix=inbox.encode(),
        user_credentials=credentials,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,
        ping_interval=PING_EVERY_S,
        error_cb=on_error,
    )


async def until_closed(connection: Client) -> None:
    """Raise `ClosedForGood` when the broker refuses the connection itself, not only a message.

    Without it a process would go on as if the broker were away for a moment, and never hear it again.
    """
    while not connection.is_closed:  # noqa: ASYNC110 - the client tells only whoever made it
        await asyncio.sleep(LOOK_EVERY_S)
    raise closed_for_good(connection)


def closed_for_good(connection: Client) -> ClosedForGood:
    """Why the broker closed a connection, for whoever notices first that it is closed."""
    return ClosedForGood(f"the broker has closed the connection: {connection.last_error}")


async def leave(connection: Client) -> None:
    """Close a connection; a broker that is away, or takes nothing, is not waited for."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await connection.close()

"""The connection to the broker, for services and workers."""

from __future__ import annotations

import asyncio
import contextlib

import structlog
from nats.aio.client import Client

from services.kit import nats_client, tls
from services.kit.flood_filter import FloodFilter
from services.kit.settings import ServiceSettings

POLL_EVERY_S = 0.5
PING_EVERY_S = 3
"""Ping interval in seconds. A silent broker is given up after three of these."""
CLOSE_TIMEOUT_S = 2.0

log = structlog.get_logger()


class ConnectionClosed(Exception):
    """The broker has closed this connection for good, and the client does not reconnect."""


async def connect(
    settings: ServiceSettings, name: str, inbox: str = "_INBOX", filter: FloodFilter | None = None
) -> Client:
    """Connect to the broker. The connection reconnects on its own, however long the broker is away.

    `inbox` is the prefix of its reply subjects. With a `filter`, senders beyond its limit are not heard.
    """

    async def on_error(error: Exception) -> None:
        log.warning("broker.error", error=str(error) or repr(error))

    credentials = str(settings.nats_credentials) if settings.nats_credentials else None
    return await nats_client.connect(
        settings.nats_url.split(","),
        **tls.broker_options(settings.nats_url, settings.tls_ca),
        name=name,
        inbox_prefix=inbox.encode(),
        user_credentials=credentials,
        # A broker may be away for days, and scripts keep their reports until then.
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,
        ping_interval=PING_EVERY_S,
        error_cb=on_error,
        filter=filter,
    )


async def raise_when_closed(connection: Client) -> None:
    """Raise `ConnectionClosed` when the broker refuses the connection itself, not only a message.

    Otherwise the process would wait forever, as if the broker were briefly away.
    """
    while not connection.is_closed:  # noqa: ASYNC110 - only the creator of a client can set a callback
        await asyncio.sleep(POLL_EVERY_S)
    raise connection_closed(connection)


def connection_closed(connection: Client) -> ConnectionClosed:
    """Build the error for a connection that the broker has closed, whichever caller notices first."""
    return ConnectionClosed(f"the broker has closed the connection: {connection.last_error}")


async def close(connection: Client) -> None:
    """Close a connection without waiting for a broker that is away or unresponsive."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await connection.close()

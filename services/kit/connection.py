"""The connection to the broker, for services and workers."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time

import structlog
from nats.aio.client import Client

from services.kit import nats_client, tls
from services.kit.bounded_dict import BoundedDict
from services.kit.flood_filter import FloodFilter
from services.kit.nats_client import NotPermitted
from services.kit.settings import ServiceSettings

POLL_EVERY_S = 0.5
PING_EVERY_S = 3
"""Ping interval in seconds. A silent broker is given up after three of these."""
CLOSE_TIMEOUT_S = 2.0
MAX_REFUSALS = 100
"""Number of things that the broker does not permit which are remembered, to log each only now and then."""
REPEAT_ERROR_S = 10.0
"""An error that stays the same is logged again after this time, with the number of attempts."""

log = structlog.get_logger()


class BrokerUnreachable(Exception):
    """A process has tried for long enough to reach the broker when it started. The text says what to do."""


class ConnectionClosed(Exception):
    """The broker has closed this connection for good, and the client does not reconnect."""


class _Attempts:
    """The failed attempts to reach the broker. They follow each other too quickly to log each of them."""

    def __init__(self, addresses: str) -> None:
        self._addresses = addresses
        self._count = 0
        self._last_error = "no answer"
        self._logged_at: float | None = None
        self._refused_at = BoundedDict[str, float](MAX_REFUSALS)

    async def on_error(self, error: Exception) -> None:
        """Log a failure, unless the same one was logged just now."""
        text, now = str(error) or repr(error), time.monotonic()
        if isinstance(error, NotPermitted):
            # Each by itself: a process may be refused several things in turn.
            if now - self._refused_at.get(text, -math.inf) >= REPEAT_ERROR_S:
                self._refused_at[text] = now
                log.error("broker.not_permitted", error=text, broker=self._addresses)
            return
        self._count += 1
        is_old = self._logged_at is None or now - self._logged_at >= REPEAT_ERROR_S
        if text != self._last_error or is_old:
            log.warning("broker.error", error=text, broker=self._addresses, failures=self._count)
            self._logged_at = now
        self._last_error = text

    def give_up(self, patience_s: float) -> BrokerUnreachable:
        """The error of a process that ends because of them."""
        return BrokerUnreachable(
            f"the broker at {self._addresses} could not be reached within {patience_s:g} s, in {self._count} "
            f"attempts; the last error was: {self._last_error}. Check STEADFAST_NATS_URL, and that this host "
            "can connect to that address"
        )


async def connect(
    settings: ServiceSettings,
    name: str,
    inbox: str = "_INBOX",
    filter: FloodFilter | None = None,
    patience_s: float = 0.0,
) -> Client:
    """Connect to the broker. The connection reconnects on its own, however long the broker is away.

    `inbox` is the prefix of its reply subjects. With a `filter`, senders beyond its limit are not heard.
    Raises `BrokerUnreachable` if the first connection takes longer than `patience_s` seconds; 0: never.
    """
    attempts = _Attempts(_without_passwords(settings.nats_url))
    credentials = str(settings.nats_credentials) if settings.nats_credentials else None
    try:
        async with asyncio.timeout(patience_s or None):
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
                error_cb=attempts.on_error,
                filter=filter,
            )
    except TimeoutError:
        raise attempts.give_up(patience_s) from None


def _without_passwords(urls: str) -> str:
    """The addresses of brokers, without the user and password that each may contain."""
    parts = (url.rpartition("//") for url in urls.split(","))
    return ",".join(f"{scheme}{slashes}{rest.rpartition('@')[2]}" for scheme, slashes, rest in parts)


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

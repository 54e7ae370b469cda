"""Arguments, connection and error messages of the commands that work on a broker's streams."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from services.kit import nats_client
from services.kit.jetstream_api import UNREACHABLE_ERRORS
from services.kit.service_subjects import service_inbox
from services.kit.tls import broker_options

ATTEMPTS = 5
RETRY_S = 0.5


class Unreachable(Exception):
    """The broker does not answer. The text says which one, and what happened instead."""


def parser(description: str | None, credentials: str) -> argparse.ArgumentParser:
    """Return a parser with the broker's arguments. `credentials` says whose credentials file is needed."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--nats", required=True, help="address of the broker, or several separated by commas")
    made.add_argument("--tls-ca", type=Path, help="PEM file of the authority behind a tls:// broker")
    made.add_argument("--credentials", type=Path, help=f"{credentials} credentials file")
    return made


@asynccontextmanager
async def connection_to(args: argparse.Namespace) -> AsyncIterator[Client]:
    """A connection to the broker that the arguments name."""
    async with connect_to_broker(args.nats, args.credentials, args.tls_ca) as connected:
        yield connected


def inbox_of(credentials: Path | None) -> str:
    """Return the inbox prefix that is heard by nobody but who has these credentials."""
    name = nats_client.user_of(credentials.read_text()) if credentials is not None else ""
    return service_inbox(name) if name else "_INBOX"


@asynccontextmanager
async def connect_to_broker(
    url: str, credentials: Path | None = None, authority: Path | None = None
) -> AsyncIterator[Client]:
    """A connection to a broker for a command that a person waits for.

    Raises `Unreachable` if no broker answers within a few seconds, and when it stops answering later.
    """
    failures: list[str] = []

    async def on_error(error: Exception) -> None:
        failures.append(str(error) or repr(error))

    try:
        connected = await nats_client.connect(
            url.split(","),
            **broker_options(url, authority),
            user_credentials=str(credentials) if credentials else None,
            inbox_prefix=inbox_of(credentials).encode(),
            max_reconnect_attempts=ATTEMPTS,
            reconnect_time_wait=RETRY_S,
            error_cb=on_error,
        )
    except UNREACHABLE_ERRORS as error:
        raise Unreachable(f"no connection to {url}: {failures[-1] if failures else error!r}") from error
    try:
        yield connected
    except NatsError as error:
        raise Unreachable(f"{url} no longer answers: {error!r}") from error
    finally:
        await connected.close()


def run(command: Coroutine[Any, Any, None], refusal: type[Exception], retry_advice: str) -> None:
    """Run a command. Exits with status 1 and the reason on `refusal` or if the broker does not answer.

    `retry_advice` says what to do once the broker answers again.
    """
    try:
        asyncio.run(command)
    except refusal as error:
        sys.exit(str(error))
    except Unreachable as error:
        sys.exit(f"the broker does not answer: {error}; {retry_advice}")
    except UNREACHABLE_ERRORS as error:
        sys.exit(f"the broker does not answer ({error!r}); {retry_advice}")

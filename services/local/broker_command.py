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

from services.kit import nats_client
from services.kit.jetstream_api import UNREACHABLE_ERRORS
from services.kit.tls import broker_options


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
    credentials = str(args.credentials) if args.credentials else None
    options = broker_options(args.nats, args.tls_ca)
    connection = await nats_client.connect(args.nats.split(","), user_credentials=credentials, **options)
    try:
        yield connection
    finally:
        await connection.close()


def run(command: Coroutine[Any, Any, None], refusal: type[Exception], retry_advice: str) -> None:
    """Run a command. Exits with status 1 and the reason on `refusal` or if the broker does not answer.

    `retry_advice` says what to do once the broker answers again.
    """
    try:
        asyncio.run(command)
    except refusal as error:
        sys.exit(str(error))
    except UNREACHABLE_ERRORS as error:
        sys.exit(f"the broker does not answer ({error!r}); {retry_advice}")

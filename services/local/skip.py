"""Has the gateway skip an event that it cannot process, when no gateway runs that could be asked for it.

    python -m services.local.skip --nats nats://127.0.0.1:4222 --credentials gateway.creds \
        --position 123 --reason "bug 45: a model without a name"

For the other services use `det master skip-event`, which checks that they stand still there. The position
and the error are on the health page (`/healthz`) and in the output of the service. The services may keep
running: the one that stands still hears of it and continues.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys
import time
import uuid
from pathlib import Path

from det_contracts import codec, subjects
from det_contracts.events.gateway import EventSkipped, SkippedEvent
from services.kit import nats_client
from services.kit.jetstream_api import UNREACHABLE_ERRORS
from services.kit.log import Draft, Log
from services.kit.log_jetstream import JetStreamLog
from services.kit.records import read_event
from services.kit.tls import broker_options


class CannotSkip(Exception):
    """The event cannot be skipped. The text says why."""


async def skip(journal: Log, owner: str, stream: str, position: int, reason: str) -> None:
    """State that an owner is to skip an event. Raises `CannotSkip` if it does so already or there is none."""
    first, last = await journal.bounds(stream)
    if not first <= position <= last:
        raise CannotSkip(f"{stream} holds no event {position}: it has those from {first} to {last}")
    stored = await journal.last(subjects.control("gateway.event.skipped", owner))
    known = read_event(stored).event if stored is not None else None
    before = known.skipped if isinstance(known, EventSkipped) else ()
    one = SkippedEvent(stream, position)
    if one in before:
        raise CannotSkip(f"the {owner} skips event {position} of {stream} already")
    decided = EventSkipped(
        owner=owner,
        stream=stream,
        position=position,
        subject="",
        error="stated on the host; see the output of the service",
        skipped=(*before, one),
        reason=reason,
    )
    id = uuid.uuid4().hex
    body = codec.encode(decided, id=id, actor=f"user:{getpass.getuser()} on the host", at=time.time())
    await journal.append(Draft(codec.subject_of(decided), body, id))


async def _main(args: argparse.Namespace) -> None:
    credentials = str(args.credentials) if args.credentials else None
    options = broker_options(args.nats, args.tls_ca)
    connection = await nats_client.connect(args.nats.split(","), user_credentials=credentials, **options)
    try:
        await skip(JetStreamLog(connection), args.owner, args.stream, args.position, args.reason)
    finally:
        await connection.close()


def main() -> None:
    """Have one event skipped. Exits with status 1 and the reason if it fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nats", required=True, help="address of the broker, or several separated by commas")
    parser.add_argument("--tls-ca", type=Path, help="PEM file of the authority behind a tls:// broker")
    parser.add_argument("--credentials", type=Path, help="the gateway's credentials file")
    parser.add_argument("--owner", default="gateway", help="the service that stands still (default: gateway)")
    parser.add_argument("--stream", default=subjects.CONTROL, help="the event's stream (default: CONTROL)")
    parser.add_argument("--position", type=int, required=True, help="the event's position")
    parser.add_argument("--reason", required=True, help="why it may be skipped, for the audit")
    args = parser.parse_args()
    try:
        asyncio.run(_main(args))
    except CannotSkip as error:
        sys.exit(str(error))
    except UNREACHABLE_ERRORS as error:
        sys.exit(f"the broker does not answer ({error!r}); run this again once it does")
    print(f"the {args.owner} skips event {args.position} of {args.stream}")


if __name__ == "__main__":
    main()

"""Has the gateway skip an event that it cannot process, when no gateway runs that could be asked for it.

    python -m services.local.skip --nats nats://127.0.0.1:4222 --credentials gateway.creds \
        --position 123 --reason "bug 45: a model without a name"

For the other services use `det master skip-event`, which checks that they stand still there. The position
and the error are on the health page (`/healthz`) and in the output of the service. The services may keep
running: the one that is stopped there receives it and continues.
"""

from __future__ import annotations

import argparse
import time
import uuid

from det_contracts import codec, subjects
from det_contracts.events.gateway import EventSkipped, SkippedEvent
from det_contracts.problems import Refused
from services.kit.log import Draft, Log
from services.kit.log_jetstream import JetStreamLog
from services.kit.os_user import os_user
from services.kit.records import read_event
from services.kit.standstill import with_skipped
from services.local import broker_command


class CannotSkip(Exception):
    """The event cannot be skipped. The text says why."""


async def skip(journal: Log, owner: str, stream: str, position: int, reason: str) -> None:
    """State that an owner is to skip an event. Raises `CannotSkip` if it does so already or there is none."""
    first, last = await journal.bounds(stream)
    if not first <= position <= last:
        raise CannotSkip(f"{stream} holds no event {position}: it has those from {first} to {last}")
    stored = await journal.last(subjects.control("gateway.event.skipped", owner))
    previous = read_event(stored).event if stored is not None else None
    before = previous.skipped if isinstance(previous, EventSkipped) else ()
    try:
        skipped = with_skipped(owner, before, SkippedEvent(stream, position))
    except Refused as error:
        raise CannotSkip(str(error)) from None
    decided = EventSkipped(
        owner=owner,
        stream=stream,
        position=position,
        subject="",
        error="stated on the host; see the output of the service",
        skipped=skipped,
        reason=reason,
    )
    id = uuid.uuid4().hex
    body = codec.encode(decided, id=id, actor=f"user:{os_user()} on the host", at=time.time())
    await journal.append(Draft(codec.subject_of(decided), body, id))


async def _main(args: argparse.Namespace) -> None:
    async with broker_command.connection_to(args) as connection:
        await skip(JetStreamLog(connection), args.owner, args.stream, args.position, args.reason)


def main() -> None:
    """Have one event skipped. Exits with status 1 and the reason if it fails."""
    parser = broker_command.parser(__doc__, "the gateway's")
    parser.add_argument("--owner", default="gateway", help="the service that stands still (default: gateway)")
    parser.add_argument("--stream", default=subjects.CONTROL, help="the event's stream (default: CONTROL)")
    parser.add_argument("--position", type=int, required=True, help="the event's position")
    parser.add_argument("--reason", required=True, help="why it may be skipped, for the audit")
    args = parser.parse_args()
    broker_command.run(_main(args), CannotSkip, "run this again once it does")
    print(f"the {args.owner} skips event {args.position} of {args.stream}")


if __name__ == "__main__":
    main()

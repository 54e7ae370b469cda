"""The NATS client library, made robust against arbitrary subjects and headers, and with cancellable requests.

Untrusted clients choose subjects and headers, and the broker accepts and forwards nearly anything. The
library's parser raises on some of it, which ends its read loop: the process then receives nothing until the
broker is considered silent, and fails again at the same message of a stream.

In Python 3.11, the library's request swallows a cancellation that arrives together with its answer. A task
that is cancelled only once, as in a task group, would run forever.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.protocol import parser

from services.kit.flood_filter import FilteringParser, FloodFilter

STATUS_LINE = "NATS/1.0"
MAX_LINES = 64
"""Header lines after these are ignored; the platform writes less than a tenth of them."""
MAX_BYTES = 64 * 1024
"""The same limit in bytes. Messages in a stream stay below it; messages only passed on may have megabytes."""

# A subject may contain characters that `\s` matches but the broker does not: vertical tab, form feed.
parser.MSG_RE = re.compile(
    rb"\AMSG[ \t]+([^ \t\r\n]+)[ \t]+([^ \t\r\n]+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)\r\n"
)
parser.HMSG_RE = re.compile(
    rb"\AHMSG[ \t]+([^ \t\r\n]+)[ \t]+([^ \t\r\n]+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)[ \t]+(\d+)\r\n"
)


class TolerantClient(Client):
    """A connection that survives any subject and header, and whose requests end when they are cancelled."""

    async def request(self, *arguments: Any, **options: Any) -> Msg:
        """Like the base class. All JetStream requests go through here too."""
        task = asyncio.current_task()
        cancellations = task.cancelling() if task else 0
        answer: Msg = await super().request(*arguments, **options)
        # A task that was cancelled earlier may still make requests, to release what it holds.
        if task and task.cancelling() > cancellations:
            raise asyncio.CancelledError
        return answer

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        return read_headers(headers) if headers else None

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Msg:
        names = subject.decode(errors="replace"), reply.decode(errors="replace")
        message: Msg = self.msg_class(self, *names, data, headers, _sid=sid)
        return message


def read_headers(block: bytes) -> dict[str, str] | None:
    """Parse a message's headers by name, including the broker's `Status` and `Description`.

    If a name occurs twice, the last value wins; malformed headers are skipped. Returns None for no headers.
    """
    first, *lines = block[:MAX_BYTES].decode(errors="replace").split("\r\n", MAX_LINES)[:MAX_LINES]
    headers: dict[str, str] = {}
    status, _, description = first.removeprefix(STATUS_LINE).strip().partition(" ")
    if first.startswith(STATUS_LINE) and status.isascii() and status.isdecimal():
        headers = {"Status": status} | ({"Description": description} if description else {})
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.strip()
        if colon and name.isascii() and name.isprintable() and " " not in name:
            headers[name] = value.strip()
    return headers or None


async def connect(servers: str | list[str], *, filter: FloodFilter | None = None, **options: Any) -> Client:
    """Connect like `nats.connect`, which also defines the exceptions. A `filter` drops some messages."""
    client = TolerantClient()
    if filter is not None:
        client._ps = FilteringParser(client, filter)
    await client.connect(servers, **options)
    return client

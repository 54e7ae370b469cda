"""The client library, made to read whatever strangers write, and to let go of a request when it is told to.

Strangers write beside their messages: subjects and headers.

The broker passes both on as they came, and takes nearly anything for them. The library's own reader raises
for some of it, and with that ends its loop: a process hears nothing until the broker is given up as silent,
and again as soon as it meets the same message in a stream.

In Python 3.11 a request of the library swallows a cancellation that comes together with its answer. Who is
cancelled once, as the tasks of a group are, would go on for ever.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.protocol import parser

FIRST_LINE = "NATS/1.0"
MOST_LINES = 64
"""What lies behind these is not looked at; nobody of the platform writes a tenth of them."""
MOST_BYTES = 64 * 1024
"""The same. What is stored in a stream has no more, what is only passed on may have megabytes."""

# A subject may hold what `\s` takes for a space but the broker does not: a vertical tab, a form feed.
parser.MSG_RE = re.compile(
    rb"\AMSG[ \t]+([^ \t\r\n]+)[ \t]+([^ \t\r\n]+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)\r\n"
)
parser.HMSG_RE = re.compile(
    rb"\AHMSG[ \t]+([^ \t\r\n]+)[ \t]+([^ \t\r\n]+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)[ \t]+(\d+)\r\n"
)


class TolerantClient(Client):
    """A connection that no subject and no header ends, and whose requests end when they are cancelled."""

    async def request(self, *asked: Any, **options: Any) -> Msg:
        """As the base class, which all that JetStream is asked goes through, too."""
        task = asyncio.current_task()
        told = task.cancelling() if task else 0
        answer: Msg = await super().request(*asked, **options)
        # Who was cancelled before may ask: it lets go of what it holds.
        if task and task.cancelling() > told:
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
    """The headers of a message, by name, among them what the broker says of it: `Status`, `Description`.

    Of a name that comes twice the last one stands, and what is no header is passed over. None for no headers.
    """
    first, *lines = block[:MOST_BYTES].decode(errors="replace").split("\r\n", MOST_LINES)[:MOST_LINES]
    found: dict[str, str] = {}
    status, _, description = first.removeprefix(FIRST_LINE).strip().partition(" ")
    if first.startswith(FIRST_LINE) and status.isascii() and status.isdecimal():
        found = {"Status": status} | ({"Description": description} if description else {})
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.strip()
        if colon and name.isascii() and name.isprintable() and " " not in name:
            found[name] = value.strip()
    return found or None


async def connect(servers: str | list[str], **options: Any) -> Client:
    """A connection, as `nats.connect` makes one; raises what that raises."""
    client = TolerantClient()
    await client.connect(servers, **options)
    return client

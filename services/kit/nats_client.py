"""The NATS client library, made robust against arbitrary subjects and headers, and with cancellable requests.

Untrusted clients choose subjects and headers, and the broker accepts and forwards nearly anything. The
library's parser raises on some of it, which ends its read loop: the process then receives nothing until the
broker is considered silent, and fails again at the same message of a stream.

In Python 3.11, the library's request swallows a cancellation that arrives together with its answer. A task
that is cancelled only once, as in a task group, would run forever.

What the broker does not permit fails at once, with the user and what to do. The library only passes on a text
with the subject, and whoever made the request waits for an answer that nobody will send.

The broker closes the connection of a client that sends more than it takes, headers included. The library
compares the body alone, so whoever sends a large one could end the connection of a process that passes it on
with a header of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.protocol import parser

from services.kit import base64url
from services.kit.bounded_dict import BoundedDict
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
MAX_REQUESTS = 1000
"""Number of newest requests that fail at once if the broker does not permit them."""
_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')
"""As the library's parser passes it on: in lower case, the subject, too."""
_VERBS = {"publish": "publish", "subscription": "subscribe"}


class NotPermitted(NatsError):
    """The broker does not let this user publish, or subscribe, to a subject. The text says what to do."""


class TolerantClient(Client):
    """A connection that survives any subject and header, and whose requests end when they are cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.credentials = ""
        """Path of the file with the user's credentials."""
        self._requested = BoundedDict[str, str](MAX_REQUESTS)
        """By reply subject, what was requested."""

    async def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Like the base class, through which requests are sent, too. Headers count for `MaxPayloadError`."""
        if headers and len(payload) + framed_bytes(headers) > self.max_payload:
            raise MaxPayloadError
        if reply:
            self._requested[reply] = subject
        await super().publish(subject, payload, reply, headers)

    async def request(self, *arguments: Any, **options: Any) -> Msg:
        """Like the base class. All JetStream requests go through here too."""
        task = asyncio.current_task()
        cancellations = task.cancelling() if task else 0
        answer: Msg = await super().request(*arguments, **options)
        # A task that was cancelled earlier may still make requests, to release what it holds.
        if task and task.cancelling() > cancellations:
            raise asyncio.CancelledError
        return answer

    async def _process_err(self, err_msg: str) -> None:
        violation = _VIOLATION.search(err_msg)
        if violation is None:
            await super()._process_err(err_msg)
            return
        what, lower_case = violation.groups()
        replies = {reply: name for reply, name in self._requested.items() if name.lower() == lower_case}
        subject = next(iter(replies.values()), lower_case)
        error = NotPermitted(
            f"the broker does not let user '{self._user()}' {_VERBS[what]} to {subject}: the credentials "
            f"({self.credentials or 'none'}) are those of another program, or older than this release. Write "
            "the keys and the configuration of the broker anew, with `python -m services.local.stack --keys "
            "FOLDER` or, for a local cluster, by its next start; then restart the broker and this process"
        )
        self._err = error
        for reply in replies if what == "publish" else ():
            waiting = self._resp_map.get(reply.removeprefix((self._resp_sub_prefix or b"").decode()))
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
        await self._error_cb(error)

    def _user(self) -> str:
        try:
            return user_of(Path(self.credentials).read_text())
        except (OSError, ValueError):
            return ""

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        return read_headers(headers) if headers else None

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Msg:
        names = subject.decode(errors="replace"), reply.decode(errors="replace")
        message: Msg = self.msg_class(self, *names, data, headers, _sid=sid)
        return message


def framed_bytes(headers: Mapping[str, str]) -> int:
    """Return how many bytes headers take in a message.

    >>> framed_bytes({"Nats-Msg-Id": "a"})
    28
    """
    lines = (f"{name}: {value}\r\n" for name, value in headers.items())
    return len(f"{STATUS_LINE}\r\n\r\n".encode()) + sum(len(line.encode()) for line in lines)


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


def user_of(credentials: str) -> str:
    """Return the name in a credentials file, such as a service's; empty if it is not such a file."""
    return str(claims_in(credentials).get("name", ""))


def claims_in(credentials: str) -> dict[str, Any]:
    """Return what a credentials file states; nothing if it is not such a file."""
    try:
        return claims_of(credentials.split("-----", 3)[2].strip().split("\n")[0])
    except IndexError:
        return {}


def claims_of(token: str) -> dict[str, Any]:
    """Return what a user's token states, without its signature being checked; nothing if it is no token."""
    try:
        _, claims, _ = token.split(".")
        stated = json.loads(base64url.decode(claims))
    except ValueError:
        return {}
    return stated if isinstance(stated, dict) else {}


async def connect(servers: str | list[str], *, filter: FloodFilter | None = None, **options: Any) -> Client:
    """Connect like `nats.connect`, which also defines the exceptions. A `filter` drops some messages."""
    client = TolerantClient()
    client.credentials = str(options.get("user_credentials") or "")
    if filter is not None:
        client._ps = FilteringParser(client, filter)
    await client.connect(servers, **options)
    return client

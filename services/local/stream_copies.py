"""Copies a whole stream out of one broker and into another, keeping positions, times and settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec
from nats.aio.client import Client

from services.kit.jetstream_api import UNREACHABLE_ERRORS, request

CHUNK = 256 * 1024
ANSWER_S = 30.0


class CannotCopy(Exception):
    """The broker did not provide or accept a stream. The text says which, and why."""


async def export_stream(connection: Client, stream: str, write: Callable[[bytes], object]) -> dict[str, Any]:
    """Write the current contents of a stream, and return what else `import_stream` needs. The stream stays
    in use.

    Raises `CannotCopy`.
    """
    inbox = connection.new_inbox()
    # The client drops messages beyond its limit without an error, and the copy would lack them.
    subscription = await connection.subscribe(inbox, pending_bytes_limit=-1)
    try:
        wanted = {"deliver_subject": inbox, "no_consumers": True, "chunk_size": CHUNK}
        answer = await request(connection, f"STREAM.SNAPSHOT.{stream}", wanted)
        if "error" in answer:
            raise CannotCopy(
                f"the broker does not provide stream {stream}: {answer['error'].get('description')}"
            )
        while (message := await subscription.next_msg(timeout=ANSWER_S)).data:
            write(message.data)
            # The broker sends only so much ahead of these acknowledgements.
            if message.reply:
                await message.respond(b"")
        status = (message.headers or {}).get("Status", "")
        if status and status != "204":
            why = (message.headers or {}).get("Description", "")
            raise CannotCopy(f"the broker aborted the copy of stream {stream}: {status} {why}")
    except UNREACHABLE_ERRORS as error:
        raise CannotCopy(f"the broker aborted the copy of stream {stream}: {error!r}") from error
    finally:
        await subscription.unsubscribe()
    return {"config": answer["config"], "state": answer["state"]}


async def import_stream(
    connection: Client, stream: str, configuration: dict[str, Any], source: BinaryIO
) -> None:
    """Create a stream from what `export_stream` wrote. Raises `CannotCopy`, also if the stream exists."""
    try:
        answer = await request(connection, f"STREAM.RESTORE.{stream}", configuration)
        _check(stream, answer)
        to = answer["deliver_subject"]
        while chunk := source.read(CHUNK):
            reply = await connection.request(to, chunk, timeout=ANSWER_S)
            if reply.data:
                _check(stream, msgspec.json.decode(reply.data))
        reply = await connection.request(to, b"", timeout=ANSWER_S)
        reply_body = msgspec.json.decode(reply.data)
        _check(stream, reply_body)
    except UNREACHABLE_ERRORS as error:
        raise CannotCopy(f"the broker aborted the restore of stream {stream}: {error!r}") from error
    ends, last = reply_body["state"]["last_seq"], configuration["state"]["last_seq"]
    if ends != last:
        raise CannotCopy(f"stream {stream} ends at {ends} after the restore, not at {last}")


def _check(stream: str, answer: dict[str, Any]) -> None:
    if "error" in answer:
        raise CannotCopy(f"the broker does not accept stream {stream}: {answer['error'].get('description')}")

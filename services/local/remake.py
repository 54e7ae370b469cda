"""Recreates, with their contents, streams whose settings from an earlier version the broker cannot change.

    python -m services.local.remake --nats nats://127.0.0.1:4222 --credentials operator.creds [--replicas 3]

The broker can change neither how a stream is flushed nor, for a lazily flushed one, its number of replicas;
nor can it lift the ban on removing messages from CONTROL, which the archive needs. The stream is therefore
copied; positions and times stay. Services must be stopped. Workers and scripts may keep running and send
their data afterwards. It handles some thousand messages per second, and can be run again if it was
interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from nats.aio.client import Client
from nats.js.errors import Error as JetStreamError

from det_contracts import subjects as names
from services.kit.jetstream_api import (
    MISSING_STREAM,
    UNREACHABLE_ERRORS,
    is_from_leader,
    request,
    request_with_retry,
)
from services.kit.lease import BUCKET
from services.kit.log_jetstream import ensure_streams
from services.local import broker_command

POLL_S = 0.2


class CannotRemake(Exception):
    """The remake stopped. The text says why."""


async def remake(connection: Client, *, replicas: int = 1) -> None:
    """Bring all streams to the current settings. Raises `CannotRemake`."""
    await _refuse_while_services_run(connection)
    for stream in names.STREAM_SUBJECTS:
        while await _do_next_step(connection, stream):
            pass
    await ensure_streams(connection.jetstream(), replicas=replicas)


async def _refuse_while_services_run(connection: Client) -> None:
    try:
        leading = await (await connection.jetstream().key_value(BUCKET)).keys()
    except JetStreamError:
        return
    raise CannotRemake(
        f"services are running, and would miss their streams: stop {', '.join(sorted(leading))}"
    )


async def _do_next_step(connection: Client, stream: str) -> bool:
    """Perform the next step, determined from the broker's state. Returns whether there was one."""
    copy = f"{stream}_COPY"
    stream_info, copy_info = await _info(connection, stream), await _info(connection, copy)
    if stream_info is None:
        if copy_info is None:
            return False
        await _call(connection, f"STREAM.CREATE.{stream}", _mirror(stream, copy_info["config"], copy))
    elif stream_info["config"].get("mirror"):
        await _promote(connection, stream, copy, [names.STREAM_SUBJECTS[stream]])
        await _call(connection, f"STREAM.DELETE.{copy}", {})
    elif _needs_remake(stream_info["config"]):
        await _copy(connection, stream, copy, stream_info, copy_info)
    elif copy_info is not None:
        await _call(connection, f"STREAM.DELETE.{copy}", {})
    else:
        return False
    return True


async def _copy(
    connection: Client, stream: str, copy: str, stream_info: dict[str, Any], copy_info: dict[str, Any] | None
) -> None:
    config = stream_info["config"]
    # Each step is derived from what the broker says, so that a run that was interrupted anywhere goes on from
    # there.
    if config["subjects"] != [f"aside.{stream}"]:
        # From now on the stream accepts nothing; senders keep their messages and retry.
        aside = config | {"subjects": [f"aside.{stream}"]}
        await _call(connection, f"STREAM.UPDATE.{stream}", aside)
    elif stream_info["state"]["messages"] == 0:
        # Only the sequence number is left of an emptied stream.
        await _call(connection, f"STREAM.DELETE.{stream}", {})
        first = {"first_seq": stream_info["state"]["last_seq"] + 1}
        fresh = _base_config(stream, config) | {"subjects": [names.STREAM_SUBJECTS[stream]]}
        await _call(connection, f"STREAM.CREATE.{stream}", fresh | first)
    elif copy_info is None:
        await _call(connection, f"STREAM.CREATE.{copy}", _mirror(copy, config, stream) | {"max_bytes": -1})
    else:
        if copy_info["config"].get("mirror"):
            await _promote(connection, copy, stream, [copy])
        await _call(connection, f"STREAM.DELETE.{stream}", {})


def _needs_remake(config: dict[str, Any]) -> bool:
    return config.get("persist_mode") == "async" or bool(config.get("deny_purge"))


def _base_config(name: str, config: dict[str, Any]) -> dict[str, Any]:
    left_out = ("persist_mode", "compression", "subjects", "mirror", "metadata", "deny_purge", "allow_atomic")
    return {key: value for key, value in config.items() if key not in left_out} | {"name": name}


def _mirror(name: str, config: dict[str, Any], of: str) -> dict[str, Any]:
    return _base_config(name, config) | {"mirror": {"name": of}, "max_age": 0}


async def _promote(connection: Client, name: str, origin: str, subjects: list[str]) -> None:
    """Turn a complete mirror into a stream of its own."""
    while True:
        mirror, source = await _info(connection, name), await _info(connection, origin)
        if mirror is None or source is None:
            raise CannotRemake(f"stream {origin if mirror else name} disappeared while it was being copied")
        if mirror["state"]["last_seq"] == source["state"]["last_seq"]:
            break
        await asyncio.sleep(POLL_S)
    # The same end does not say that nothing in between is missing.
    if mirror["state"]["messages"] != source["state"]["messages"]:
        raise CannotRemake(f"{name} has {mirror['state']['messages']} messages, not as many as {origin}")
    own = {key: value for key, value in mirror["config"].items() if key not in ("mirror", "metadata")}
    await _call(connection, f"STREAM.UPDATE.{name}", own | {"subjects": subjects})


async def _info(connection: Client, stream: str) -> dict[str, Any] | None:
    while True:
        answer = await request_with_retry(connection, f"STREAM.INFO.{stream}", {})
        # Another member of the cluster may not know the newest state yet.
        if "error" not in answer and is_from_leader(answer):
            return answer
        if answer.get("error", {}).get("err_code") == MISSING_STREAM:
            return None
        await asyncio.sleep(POLL_S)


async def _call(connection: Client, subject: str, body: dict[str, Any]) -> None:
    """Make one change. If the broker does not answer, the next look shows whether it was made."""
    try:
        answer = await request(connection, subject, body)
    except UNREACHABLE_ERRORS:
        return
    if "error" in answer:
        raise CannotRemake(f"the broker refused {subject}: {answer['error'].get('description')}")


async def _main(args: argparse.Namespace) -> None:
    async with broker_command.connection_to(args) as connection:
        await remake(connection, replicas=args.replicas)


def main() -> None:
    """Remake the streams of one cluster. Exits with status 1 and the reason if it fails."""
    parser = broker_command.parser(__doc__, "a service's")
    parser.add_argument("--replicas", type=int, default=1, help="copies of each stream afterwards: 1 or 3")
    advice = "rerun once it does; it continues where it stopped"
    broker_command.run(_main(parser.parse_args()), CannotRemake, advice)


if __name__ == "__main__":
    main()

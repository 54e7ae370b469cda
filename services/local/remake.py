"""Makes streams anew, with all that they hold, that an earlier version made in ways the broker never changes.

    python -m services.local.remake --nats nats://127.0.0.1:4222 --credentials operator.creds [--replicas 3]

The broker changes neither how a stream is flushed nor, for a lazy one, how many replicas it has; nor does it
take back that nothing is removed from CONTROL, which the archive does. So the stream is copied: positions
and times stay. Services must be stopped; workers and scripts may run on, and send what they have afterwards.
It takes a second for some thousand messages, and may be run again when it was interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.js.errors import Error as JetStreamError

from det_contracts import subjects as names
from services.kit import client
from services.kit.jetstream_api import AWAY, MISSING_STREAM, ask, ask_until_answered, is_leaders
from services.kit.lease import BUCKET
from services.kit.log_jetstream import ensure_streams
from services.kit.tls import broker_options

LOOK_S = 0.2


class CannotRemake(Exception):
    """Nothing more was done; the text says why."""


async def remake(connection: Client, *, replicas: int = 1) -> None:
    """Bring all streams to today's settings; raises `CannotRemake`."""
    await _refuse_while_services_run(connection)
    for stream in names.STREAM_SUBJECTS:
        while await _go_on(connection, stream):
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


async def _go_on(connection: Client, stream: str) -> bool:
    """Make one step, which one the broker's state tells; returns whether there was something to do."""
    copy = f"{stream}_COPY"
    of_stream, of_copy = await _info(connection, stream), await _info(connection, copy)
    if of_stream is None:
        if of_copy is None:
            return False
        await _call(connection, f"STREAM.CREATE.{stream}", _mirror(stream, of_copy["config"], copy))
    elif of_stream["config"].get("mirror"):
        await _promote(connection, stream, copy, [names.STREAM_SUBJECTS[stream]])
        await _call(connection, f"STREAM.DELETE.{copy}", {})
    elif _is_old(of_stream["config"]):
        await _copy(connection, stream, copy, of_stream, of_copy)
    elif of_copy is not None:
        await _call(connection, f"STREAM.DELETE.{copy}", {})
    else:
        return False
    return True


async def _copy(
    connection: Client, stream: str, copy: str, of_stream: dict[str, Any], of_copy: dict[str, Any] | None
) -> None:
    config = of_stream["config"]
    if config["subjects"] != [f"aside.{stream}"]:
        # From now on nothing is added: whoever sends keeps it, and tries again.
        aside = config | {"subjects": [f"aside.{stream}"]}
        await _call(connection, f"STREAM.UPDATE.{stream}", aside)
    elif of_stream["state"]["messages"] == 0:
        # Of what has been forgotten only the number is left.
        await _call(connection, f"STREAM.DELETE.{stream}", {})
        first = {"first_seq": of_stream["state"]["last_seq"] + 1}
        fresh = _usual(stream, config) | {"subjects": [names.STREAM_SUBJECTS[stream]]}
        await _call(connection, f"STREAM.CREATE.{stream}", fresh | first)
    elif of_copy is None:
        await _call(connection, f"STREAM.CREATE.{copy}", _mirror(copy, config, stream) | {"max_bytes": -1})
    else:
        if of_copy["config"].get("mirror"):
            await _promote(connection, copy, stream, [copy])
        await _call(connection, f"STREAM.DELETE.{stream}", {})


def _is_old(config: dict[str, Any]) -> bool:
    return config.get("persist_mode") == "async" or bool(config.get("deny_purge"))


def _usual(name: str, config: dict[str, Any]) -> dict[str, Any]:
    left_out = ("persist_mode", "compression", "subjects", "mirror", "metadata", "deny_purge", "allow_atomic")
    return {key: value for key, value in config.items() if key not in left_out} | {"name": name}


def _mirror(name: str, config: dict[str, Any], of: str) -> dict[str, Any]:
    return _usual(name, config) | {"mirror": {"name": of}, "max_age": 0}


async def _promote(connection: Client, name: str, origin: str, subjects: list[str]) -> None:
    """Make a mirror that has everything a stream of its own."""
    while True:
        mirror, source = await _info(connection, name), await _info(connection, origin)
        if mirror is None or source is None:
            raise CannotRemake(f"stream {origin if mirror else name} is gone while it is copied")
        if mirror["state"]["last_seq"] == source["state"]["last_seq"]:
            break
        await asyncio.sleep(LOOK_S)
    if mirror["state"]["messages"] != source["state"]["messages"]:
        raise CannotRemake(f"{name} has {mirror['state']['messages']} messages, not as many as {origin}")
    own = {key: value for key, value in mirror["config"].items() if key not in ("mirror", "metadata")}
    await _call(connection, f"STREAM.UPDATE.{name}", own | {"subjects": subjects})


async def _info(connection: Client, stream: str) -> dict[str, Any] | None:
    while True:
        answer = await ask_until_answered(connection, f"STREAM.INFO.{stream}", {})
        if "error" not in answer and is_leaders(answer):
            return answer
        if answer.get("error", {}).get("err_code") == MISSING_STREAM:
            return None
        await asyncio.sleep(LOOK_S)


async def _call(connection: Client, subject: str, body: dict[str, Any]) -> None:
    """Make one change; whether one that nobody answered was made, the next look tells."""
    try:
        answer = await ask(connection, subject, body)
    except AWAY:
        return
    if "error" in answer:
        raise CannotRemake(f"the broker refused {subject}: {answer['error'].get('description')}")


async def _main(args: argparse.Namespace) -> None:
    credentials = str(args.credentials) if args.credentials else None
    options = broker_options(args.nats, args.tls_ca)
    connection = await client.connect(args.nats.split(","), user_credentials=credentials, **options)
    try:
        await remake(connection, replicas=args.replicas)
    finally:
        await connection.close()


def main() -> None:
    """Remake the streams of one cluster; exit status 1 with the reason when it cannot be done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nats", required=True, help="address of the broker, or several, with commas")
    parser.add_argument("--tls-ca", type=Path, help="PEM file of who vouches for a broker at tls://")
    parser.add_argument("--credentials", type=Path, help="a service's credentials file")
    parser.add_argument("--replicas", type=int, default=1, help="copies of each stream afterwards: 1 or 3")
    try:
        asyncio.run(_main(parser.parse_args()))
    except CannotRemake as error:
        sys.exit(str(error))
    except AWAY as error:
        sys.exit(
            f"the broker does not answer ({error!r}); run this again when it does, it goes on from there"
        )


if __name__ == "__main__":
    main()

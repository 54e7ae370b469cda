"""Prints logs. Defines the options shared by `det experiment logs`, `det trial logs` and `det task logs`.

Client spec, section 6.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from determined.cli import output
from determined.cli.grammar import Arg, OneOf, arg, one_of
from determined.transport import instant, log_stream
from determined.transport.log_stream import Source
from determined.transport.rest import Session

_LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_ANY_LEVEL = "UNSPECIFIED"


def _instant(text: str) -> str:
    try:
        return instant.write(instant.parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not an instant like 2023-08-01T12:00:00Z") from error


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of lines")
    return int(text)


LOG_ARGS: tuple[Arg | OneOf, ...] = (
    one_of(
        arg("-f", "--follow", action="store_true", help="keep printing until it has ended"),
        arg("--head", type=_count, metavar="N", help="the first N lines only"),
        arg("--tail", type=_count, metavar="N", help="the last N lines only"),
    ),
    arg("--agent-id", action="append", dest="agentIds", metavar="ID", help="only lines of this agent"),
    arg("--container-id", action="append", dest="containerIds", metavar="ID", help="only of this container"),
    arg("--allocation-id", action="append", dest="allocationIds", metavar="ID", help="only of this run"),
    arg("--rank-id", action="append", dest="rankIds", type=int, metavar="N", help="only of this rank"),
    arg("--source", action="append", dest="sources", metavar="NAME", help="only of this source"),
    arg(
        "--stdtype",
        action="append",
        dest="stdtypes",
        choices=("stdout", "stderr"),
        help="only of this stream",
    ),
    arg("--timestamp-before", dest="timestampBefore", type=_instant, metavar="TIME", help="RFC 3339"),
    arg("--timestamp-after", dest="timestampAfter", type=_instant, metavar="TIME", help="RFC 3339"),
    arg(
        "--level",
        choices=(_ANY_LEVEL, *_LEVELS),
        help="only of this level or higher; UNSPECIFIED: every line, as without this option",
    ),
    one_of(
        arg("--search", dest="searchText", metavar="TEXT", help="only lines that contain this text"),
        arg("--regex", metavar="PATTERN", help="only lines that match this regular expression (RE2)"),
    ),
    arg("--json", action="store_true", help="one JSON object per line"),
)

_FILTERS = (
    *("agentIds", "containerIds", "rankIds", "sources", "stdtypes", "timestampBefore", "timestampAfter"),
    *("allocationIds", "searchText", "regex"),
)


def show_logs(session: Session, source: Source, args: argparse.Namespace) -> None:
    """Print the lines selected by the options, and then that the stream has ended."""
    for record in _records(session, source, args):
        if args.json:
            print(json.dumps(record, sort_keys=True), flush=args.follow)
        else:
            show_line(record, flush=args.follow)
    say_ended(source, sys.stderr if args.json else sys.stdout)


def show_last(session: Session, source: Source, count: int) -> None:
    """Print the last lines that have arrived."""
    for record in _last(session, source, {}, count):
        show_line(record, flush=True)


def show_line(record: dict[str, Any], flush: bool) -> None:
    """Print a line as rendered by the master; on a terminal, it controls nothing but colors."""
    print(output.log_line(record["message"].removesuffix("\n")), flush=flush)


def say_ended(source: Source, file: Any = None) -> None:
    """Print the closing line of a log."""
    reopen = f"det {source.noun} logs -f {source.id}"
    output.good(f"{source.noun.capitalize()} log stream ended. To reopen log stream, run: {reopen}", file)


def _records(session: Session, source: Source, args: argparse.Namespace) -> Iterable[dict[str, Any]]:
    params = _params(args)
    if args.follow:
        return log_stream.follow(session, source, params)
    if args.head == 0 or args.tail == 0:
        return ()
    if args.head is not None:
        return log_stream.read(session, source, {**params, "limit": args.head})
    if args.tail is not None:
        return _last(session, source, params, args.tail)
    return log_stream.read(session, source, params)


def _last(session: Session, source: Source, params: dict[str, Any], count: int) -> Iterable[dict[str, Any]]:
    # A limit counts from the start of the order that is asked for.
    newest_first = {**params, "limit": count, "orderBy": "ORDER_BY_DESC"}
    return reversed(list(log_stream.read(session, source, newest_first)))


def _params(args: argparse.Namespace) -> dict[str, Any]:
    params = {name: value for name in _FILTERS if (value := getattr(args, name)) is not None}
    if args.level not in (None, _ANY_LEVEL):
        params["levels"] = [f"LOG_LEVEL_{level}" for level in _LEVELS[_LEVELS.index(args.level) :]]
    return params

"""`det resources`: slot usage over time (client spec, section 6)."""

from __future__ import annotations

import argparse
import shutil
import sys
import urllib.parse

from determined.cli import output
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

PATH = "/resources/allocation"
_JSON = arg("--json", action="store_true", help="write JSON instead of CSV")


def raw(session: Session, args: argparse.Namespace) -> None:
    """Export usage for each run."""
    params = {"timestamp_after": args.timestamp_after, "timestamp_before": args.timestamp_before}
    _show(session, "raw", params, args)


def aggregated(session: Session, args: argparse.Namespace) -> None:
    """Export usage by day or month."""
    period = f"RESOURCE_ALLOCATION_AGGREGATION_PERIOD_{'MONTHLY' if args.monthly else 'DAILY'}"
    params = {"start_date": args.start_date, "end_date": args.end_date, "period": period}
    _show(session, "aggregated", params, args)


def _show(session: Session, what: str, params: dict[str, str], args: argparse.Namespace) -> None:
    path = f"{PATH}/{what}?{urllib.parse.urlencode(params)}"
    if args.json:
        output.print_json(session.get(f"/api/v1{path}"))
        return
    sys.stdout.flush()
    with session.open(path, accept="text/csv") as table:
        shutil.copyfileobj(table, sys.stdout.buffer)
    sys.stdout.buffer.flush()


NOUN = Noun(
    "resources res",
    "report how slots were used",
    (
        Verb(
            "raw",
            "list all runs that held slots in a period, as CSV",
            raw,
            (
                arg("timestamp_after", metavar="AFTER", help="start time, such as 2023-08-01T00:00:00Z"),
                arg("timestamp_before", metavar="BEFORE", help="end time"),
                _JSON,
            ),
        ),
        Verb(
            "aggregated agg",
            "sum slot usage by user, label and pool, as CSV",
            aggregated,
            (
                arg("start_date", metavar="FIRST", help="first day, such as 2023-08-01"),
                arg("end_date", metavar="LAST", help="last day"),
                arg(
                    "--monthly",
                    action="store_true",
                    help="sum by month; FIRST and LAST are months, such as 2023-08",
                ),
                _JSON,
            ),
        ),
    ),
)

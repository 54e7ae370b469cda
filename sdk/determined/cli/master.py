"""`det master`: the control plane itself (client spec, section 6)."""

from __future__ import annotations

import argparse
import shutil
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from determined.cli import output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.transport.rest import Session

_AUDIT = ("time", "username", "about", "what", "reason")
_FORM = (
    one_of(
        arg("--json", action="store_true", help="write JSON"),
        arg("--yaml", action="store_true", help="write YAML (default)"),
    ),
)


def info(session: Session, args: argparse.Namespace) -> None:
    """Show information about the master."""
    _show(session.get("/api/v1/master"), args)


def health(session: Session, args: argparse.Namespace) -> int:
    """Show whether the cluster is healthy, and any problems. Status 0 if there are none."""
    report = session.get("/api/v1/master/health")
    if args.json:
        output.print_json(report)
        return int(report["status"] != "up")
    print(f"{session.master} is {report['status']}")
    output.table(("Part", "State"), sorted(report["parts"].items()))
    for reason in report["reasons"]:
        text = f"\n{reason['program']}: {reason['message']}\nsince {reason['since']}\n{reason['action']}"
        print(output.harmless(text))
    return int(report["status"] != "up")


def config(session: Session, args: argparse.Namespace) -> None:
    """How the master is configured, secrets masked, or how it logs from now on; for administrators."""
    log_settings: dict[str, Any] = {} if args.level is None else {"level": args.level}
    if args.color is not None:
        log_settings["color"] = args.color == "on"
    if args.log != bool(log_settings):
        raise Failure(
            "--log needs --level, --color or both: det master config --log --level LEVEL --color on|off"
        )
    if args.log:
        body = {
            "config": {"log": log_settings},
            "fieldMask": {"paths": [f"log.{name}" for name in log_settings]},
        }
        session.patch("/api/v1/master/config", body)
        output.good("The log settings of the services have been changed")
        return
    _show(session.get("/api/v1/master/config")["config"], args)


def logs(session: Session, args: argparse.Namespace) -> None:
    """Show the master's own log."""
    params: dict[str, Any] = {"follow": "true"} if args.follow else {}
    if args.tail is not None:
        # A negative offset counts from the end.
        params |= {"offset": -args.tail, "limit": args.tail}
    for line in log_lines(session, params):
        print(line, flush=args.follow)


def log_lines(session: Session, params: dict[str, Any] | None = None) -> Iterator[str]:
    """Yield lines of the master's log for display, without line endings."""
    for record in session.stream("/api/v1/master/logs", params or {}):
        entry = record["logEntry"]
        level = str(entry.get("level") or "").removeprefix("LOG_LEVEL_")
        message = output.harmless(entry["message"])
        yield f"{entry.get('timestamp')} [{level}]: {message}".rstrip("\n")


def parked(session: Session, args: argparse.Namespace) -> None:
    """List what the cluster skipped so that it could continue with everything else."""
    report = session.get("/api/v1/master/parked")
    if args.json:
        output.print_json(report)
        return
    rows = [(message["position"], message["subject"], message["reason"]) for message in report["unreadable"]]
    print("Messages in the log that cannot be read:")
    output.table(("Position", "Subject", "Reason"), rows)
    if report["more"]:
        print("There are older ones.")
    print("\nRecords that nothing can be decided about until they change:")
    output.table(("Service", "Since", "Message"), [_parked_row(message) for message in report["parked"]])
    if standing := report.get("standing"):
        print("\nEvents that a service cannot process, at which it stands still:")
        output.table(
            ("Service", "Since", "Stream", "Position", "Subject", "Error"),
            [_standing_row(event) for event in standing],
        )


def retry_parked(session: Session, args: argparse.Namespace) -> None:
    """Make a service retry what it could not decide about or process."""
    session.post("/api/v1/master/parked/retry", {"program": args.program})
    output.good(f"The {args.program} retries what it parked; see 'det master parked'")


def skip_event(session: Session, args: argparse.Namespace) -> None:
    """Make a service skip, for ever, the event at which it stands still."""
    place = f"event {args.position} of {args.stream}"
    question = (
        f"The {args.program} will never process {place}: whatever that event changes is lost for this "
        "service, and what depends on it may fail later. This cannot be undone. Skip it?"
    )
    if not args.yes and not output.confirm(question):
        return
    skip = {"program": args.program, "stream": args.stream, "position": args.position, "reason": args.reason}
    session.post("/api/v1/master/parked/skip", skip)
    output.good(f"The {args.program} skips {place} and continues; see 'det master parked'")


def rebuild(session: Session, args: argparse.Namespace) -> None:
    """Make a service rebuild its database from the log, or list what can be rebuilt."""
    if args.program is None:
        programs = session.get("/api/v1/master/rebuild")["programs"]
        rows = []
        for program in programs:
            refused = f"refused: {program['refused']}" if program.get("refused") else "-"
            rows.append((program["program"], program["progress"] or refused))
        output.table(("Service", "Rebuild"), rows)
        return
    way = (
        "fills its database again from the newest copy"
        if args.program.startswith("metrics")
        else "starts again with an empty database and folds the whole log"
    )
    question = (
        f"The {args.program} {way}. Until it is done, it decides and answers nothing; scripts keep training. "
        "Rebuild it?"
    )
    if not args.yes and not output.confirm(question):
        return
    session.post("/api/v1/master/rebuild", {"program": args.program})
    output.good(f"The {args.program} rebuilds its database; see 'det master rebuild' and 'det master health'")


def archive(session: Session, args: argparse.Namespace) -> None:
    """Show which part of the log has been moved out of the broker."""
    archive = session.get("/api/v1/master/archive")
    if args.json:
        output.print_json(archive)
        return
    print(f"in the broker: events {archive['first']} to {archive['last']}")
    if not archive["place"]:
        print("There is no archive: the broker keeps the whole log (set STEADFAST_ARCHIVE to change that).")
        return
    print(
        f"in the archive: events up to {archive['archived']}, {archive['segments']} segments, "
        f"{archive['bytes']:,} bytes in {archive['place']}"
    )


def audit(session: Session, args: argparse.Namespace) -> None:
    """Show which users' commands changed what."""
    filters = {"users": args.user, "event": args.event, "about": args.about}
    filters |= {"since": args.since, "until": args.until}
    params = {name: value for name, value in filters.items() if value}
    if args.csv or args.json:
        # Everything, oldest first, streamed.
        query = urllib.parse.urlencode(params | {"format": "csv" if args.csv else "json"}, doseq=True)
        with session.open(f"/api/v1/master/audit/export?{query}", accept="*/*") as export:
            shutil.copyfileobj(export, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    page = session.get("/api/v1/master/audit", params | {"limit": args.limit})
    rows = [[entry[name] for name in _AUDIT] for entry in reversed(page["entries"])]
    output.table(("Time", "User", "About", "What", "Why"), rows)
    if page["more"]:
        print(f"There are older ones: give --limit, --until {page['entries'][-1]['time']}, or --csv for all.")


def _parked_row(message: Mapping[str, str]) -> tuple[str, ...]:
    error = message.get("error")
    return message["program"], message["since"], message["message"] + (f": {error}" if error else "")


def _standing_row(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(event[name] for name in ("program", "since", "stream", "position", "subject", "error"))


def _show(value: Any, args: argparse.Namespace) -> None:
    if args.json:
        output.print_json(value)
    else:
        output.print_yaml(value)


_PROGRAM = arg("program", help="the service that 'det master parked' names, such as searcher")

NOUN = Noun(
    "master",
    "show the master's version, health and logs",
    (
        Verb("info", "show the master's version and identity", info, _FORM, login=False),
        Verb(
            "health",
            "show whether the cluster works",
            health,
            (arg("--json", action="store_true", help="write JSON"),),
            login=False,
        ),
        Verb(
            "parked",
            "list what the cluster could not read or decide about",
            parked,
            (arg("--json", action="store_true", help="write JSON"),),
        ),
        Verb(
            "retry-parked",
            "make a service retry what it could not decide about or process",
            retry_parked,
            (_PROGRAM,),
        ),
        Verb(
            "skip-event",
            "make a service skip an event that it cannot process",
            skip_event,
            (
                _PROGRAM,
                arg("position", type=int, help="the position that 'det master parked' names"),
                arg("--stream", default="CONTROL", help="the stream of the event (default: CONTROL)"),
                arg("--reason", required=True, metavar="TEXT", help="why it may be skipped, for the audit"),
                arg("-y", "--yes", action="store_true", help="do not ask"),
            ),
        ),
        Verb(
            "rebuild",
            "make a service rebuild its database from the log",
            rebuild,
            (
                arg("program", nargs="?", help="such as searcher; without it, list what can be rebuilt"),
                arg("-y", "--yes", action="store_true", help="do not ask"),
            ),
        ),
        Verb(
            "archive",
            "show which part of the log was moved out of the broker",
            archive,
            (arg("--json", action="store_true", help="write JSON"),),
        ),
        Verb(
            "audit",
            "show who did what, the newest last",
            audit,
            (
                arg(
                    "--user",
                    action="append",
                    metavar="NAME",
                    help="only actions of this user; may be repeated",
                ),
                arg("--about", metavar="THING", help="only changes of this object, such as 'experiment 7'"),
                arg(
                    "--event",
                    metavar="PREFIX",
                    help="only events whose name has this prefix, such as gateway.user",
                ),
                arg("--since", metavar="TIME", help="only from this time on, such as 2026-11-01T00:00:00Z"),
                arg("--until", metavar="TIME", help="only before this time"),
                arg(
                    "--limit",
                    type=int,
                    default=100,
                    metavar="N",
                    help="maximum number of entries (default: 100)",
                ),
                one_of(
                    arg("--csv", action="store_true", help="write all of it as CSV"),
                    arg("--json", action="store_true", help="write every entry, one JSON object per line"),
                ),
            ),
        ),
        Verb(
            "config",
            "show the master's configuration, or change how it logs",
            config,
            (
                *_FORM,
                arg("--log", action="store_true", help="change how the services log from now on"),
                arg("--level", metavar="LEVEL", help="with --log: trace, debug, info, warn or error"),
                arg("--color", choices=("on", "off"), help="with --log: colors in lines for people"),
            ),
        ),
        Verb(
            "logs",
            "show the master's own log",
            logs,
            (
                arg("-f", "--follow", action="store_true", help="keep printing until interrupted"),
                arg("--tail", type=int, metavar="N", help="the last N lines only"),
            ),
        ),
    ),
)

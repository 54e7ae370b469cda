"""`det trial`: single training runs (client spec, section 6)."""

from __future__ import annotations

import argparse
from pathlib import Path

from determined.cli import download as downloads
from determined.cli import formatting, output, support_bundle, trial_logs, trial_metrics
from determined.cli.experiment_describe import Object, Sheet, kind_and_body, show_reasons, show_sheets
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.cli.log_cause import read_log_cause
from determined.cli.paging import paging_args, read_pages
from determined.transport import log_stream
from determined.transport.rest import Session

_ID = arg("trial_id", type=int, help="number of the trial")


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show a trial and its workloads, followed by the reason for its state."""
    trial = session.get(f"/api/v1/trials/{args.trial_id}")["trial"]
    params = {"includeBatchMetrics": "true"} if args.json and args.metrics else {}
    workloads = read_pages(session, f"/api/v1/trials/{args.trial_id}/workloads", "workloads", args, params)
    if args.json:
        output.print_json({"trial": trial, "workloads": workloads})
        return
    sheets = [_trial(trial)]
    if args.metrics_summary:
        sheets.append(_summary(trial.get("summaryMetrics") or {}))
    sheets.append(_workloads(workloads, args.metrics))
    show_sheets(sheets, args.csv, bare_first=True)
    if args.csv:
        return
    show_reasons("Trial", [trial])
    if trial["state"] == "STATE_ERROR" and (cause := read_log_cause(session, args.trial_id)):
        print(f"\n{cause}")


def _trial(trial: Object) -> Sheet:
    headers = ["Experiment ID", "State", "H-Params", "Started", "Ended", "Restarts", "# of Batches"]
    row = [
        trial.get("experimentId"),
        formatting.state(trial["state"]),
        formatting.compact(trial.get("hparams")),
        formatting.when(trial.get("startTime")),
        formatting.when(trial.get("endTime")),
        trial.get("restarts"),
        trial.get("totalBatchesProcessed"),
    ]
    return Sheet("Trial", headers, [row])


def _workloads(workloads: list[Object], with_metrics: bool) -> Sheet:
    """Return one row per workload. Validation metrics are always shown, training metrics on request."""
    headers = ["# of Batches", "Report Time", "Checkpoint", "Checkpoint UUID", "Checkpoint Metadata"]
    headers += ["Validation Metrics", *["Workload Metrics"] * with_metrics]
    rows = []
    for kind, body in map(kind_and_body, workloads):
        metrics = formatting.compact(body.get("metrics"))
        row = [body.get("totalBatches"), formatting.when(body.get("endTime"))]
        row += [formatting.state(body.get("state", "")) or None if kind == "checkpoint" else None]
        row += [body.get("uuid"), formatting.compact(body.get("metadata"))]
        row += [metrics if kind == "validation" else None]
        rows.append(row + [metrics if kind == "training" else None] * with_metrics)
    return Sheet("Workloads", headers, rows)


def _summary(groups: dict[str, dict[str, dict[str, object]]]) -> Sheet:
    fields = ("count", "min", "max", "mean", "last", "type")
    rows = [
        [group.removesuffix("_metrics"), name, *(values.get(field) for field in fields)]
        for group, metrics in sorted(groups.items())
        for name, values in sorted((metrics or {}).items())
    ]
    return Sheet("Metrics", ["Group", "Metric", *(field.capitalize() for field in fields)], rows)


def logs(session: Session, args: argparse.Namespace) -> None:
    """Show the log of a trial."""
    trial_logs.show_logs(session, log_stream.trial(args.trial_id), args)


def kill(session: Session, args: argparse.Namespace) -> None:
    """Kill a trial. Its experiment continues."""
    session.post(f"/api/v1/trials/{args.trial_id}/kill")
    print(f"Killed trial {args.trial_id}")


def download(session: Session, args: argparse.Namespace) -> None:
    """Download one of the trial's checkpoints."""
    from determined.experimental._trial import TrialReference

    try:
        checkpoint = TrialReference(args.trial_id, session).select_checkpoint(
            latest=args.latest,
            best=args.best,
            uuid=args.uuid,
            sort_by=args.sort_by,
            smaller_is_better=args.smaller_is_better,
        )
    except (AssertionError, ValueError) as error:
        raise Failure(str(error)) from error
    path = downloads.fetch(checkpoint, args.output_dir, args.mode, args.quiet)
    downloads.show([(checkpoint, path)], args.quiet)


NOUN = Noun(
    "trial t",
    "watch and stop trials",
    (
        Verb(
            "describe",
            "describe a trial",
            describe,
            (
                _ID,
                arg("--metrics", action="store_true", help="show the metrics of each workload"),
                arg("--metrics-summary", action="store_true", help="show a summary of each metric"),
                arg("--json", action="store_true", help="write the master's response"),
                arg("--csv", action="store_true", help="write CSV"),
                *paging_args(limit=1000),
            ),
        ),
        Verb(
            "metrics",
            "write all metrics of a trial as a table",
            trial_metrics.show_metrics,
            (_ID, *trial_metrics.ARGS),
        ),
        Verb("logs", "show the log of a trial", logs, (_ID, *trial_logs.LOG_ARGS)),
        Verb(
            "download",
            "download a checkpoint of a trial",
            download,
            (
                _ID,
                one_of(
                    arg("--best", action="store_true", help="the best by the searcher metric"),
                    arg("--latest", action="store_true", help="the one with the most batches"),
                    arg("--uuid", metavar="UUID", help="the one with this id"),
                    required=True,
                ),
                arg("-o", "--output-dir", type=Path, metavar="DIR", help="default: checkpoints/UUID"),
                *downloads.SORT,
                downloads.MODE,
                downloads.QUIET,
            ),
        ),
        Verb("kill", "kill a trial", kill, (_ID,)),
        Verb(
            "support-bundle",
            "collect logs and records of a trial in one file",
            support_bundle.bundle,
            support_bundle.ARGS,
        ),
    ),
)

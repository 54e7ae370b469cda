"""`det experiment describe`, and what `det trial describe` shares with it (client spec, section 5)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from determined.cli import output, wording
from determined.cli.grammar import arg
from determined.transport.rest import Params, Session

Object = dict[str, Any]


class Sheet(NamedTuple):
    """One table with a title."""

    title: str
    headers: list[str]
    rows: list[list[Any]]


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of ids like 1,2,3") from error


DESCRIBE_ARGS = (
    arg("experiment_ids", type=_ids, help="one id, or several with commas"),
    arg("--metrics", action="store_true", help="show the metrics of each workload"),
    arg("--csv", action="store_true", help="write CSV"),
    arg("--json", action="store_true", help="write the master's answers"),
    arg("--outdir", type=Path, metavar="DIR", help="write three CSV files there"),
)


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show experiments, their trials and what these did; below, why they ended as they did."""
    answers = [session.get(f"/api/v1/experiments/{number}") for number in args.experiment_ids]
    if args.json:
        output.print_json(answers)
        return
    experiments = [answer["experiment"] for answer in answers]
    trials = [trial for one in experiments for trial in _trials(session, one)]
    workloads = [(trial, workload) for trial in trials for workload in read_workloads(session, trial["id"])]
    sheets = [experiment_sheet(experiments), trial_sheet(trials), workload_sheet(workloads, args.metrics)]
    if args.outdir:
        _write_files(args.outdir, sheets)
        return
    show_sheets(sheets, args.csv)
    if not args.csv:
        show_reasons("Experiment", experiments)
        show_reasons("Trial", trials)


def read_workloads(session: Session, trial_id: int, params: Params | None = None) -> list[Object]:
    """What a trial did, each `{"training" | "validation" | "checkpoint": ...}`."""
    answer = session.get(f"/api/v1/trials/{trial_id}/workloads", {"limit": 0, **(params or {})})
    found: list[Object] = answer["workloads"]
    return found


def show_sheets(sheets: Iterable[Sheet], as_csv: bool) -> None:
    """Print tables, each under its title; CSV parts are set apart by an empty line."""
    for number, sheet in enumerate(sheets):
        if number:
            print()
        if not as_csv:
            print(f"{sheet.title}:")
        output.table(sheet.headers, sheet.rows, as_csv=as_csv)


def show_reasons(kind: str, objects: Iterable[Object]) -> None:
    """Say why each object is in its state, where the master tells."""
    for one in objects:
        if reason := one.get("stateReason"):
            state = wording.state(one["state"])
            print(f"\n{kind} {one['id']} is {state}: {reason}")


def experiment_sheet(experiments: list[Object]) -> Sheet:
    """One row per experiment."""
    headers = ["Experiment ID", "State", "Progress", "Started", "Ended", "Name", "Description", "Archived"]
    headers += ["Resource Pool", "Labels"]
    return Sheet("Experiment", headers, [_experiment_row(one) for one in experiments])


def trial_sheet(trials: list[Object]) -> Sheet:
    """One row per trial."""
    headers = ["Trial ID", "Experiment ID", "State", "Started", "Ended", "Restarts", "# of Batches"]
    return Sheet("Trials", [*headers, "H-Params"], [_trial_row(one) for one in trials])


def workload_sheet(workloads: list[tuple[Object, Object]], with_metrics: bool) -> Sheet:
    """One row per (trial, workload); with metrics, one column per kind and name."""
    items = [(trial["id"], *_kind_and_body(workload)) for trial, workload in workloads]
    names = _metric_names(items) if with_metrics else []
    headers = ["Trial ID", "# of Batches", "Workload", "State", "Report Time", "Checkpoint UUID"]
    headers += [f"{kind.capitalize()}: {name}" for kind, name in names]
    return Sheet("Workloads", headers, [_workload_row(*item, names) for item in items])


def _trials(session: Session, experiment: Object) -> list[Object]:
    answer = session.get(f"/api/v1/experiments/{experiment['id']}/trials", {"limit": 0})
    found: list[Object] = answer["trials"]
    return found


def _experiment_row(one: Object) -> list[Any]:
    return [
        one["id"],
        wording.state(one["state"]),
        wording.percent(one.get("progress")),
        wording.when(one.get("startTime")),
        wording.when(one.get("endTime")),
        one.get("name"),
        one.get("description"),
        one.get("archived"),
        one.get("resourcePool"),
        wording.listed(one.get("labels")),
    ]


def _trial_row(one: Object) -> list[Any]:
    return [
        one["id"],
        one.get("experimentId"),
        wording.state(one["state"]),
        wording.when(one.get("startTime")),
        wording.when(one.get("endTime")),
        one.get("restarts"),
        one.get("totalBatchesProcessed"),
        wording.compact(one.get("hparams")),
    ]


def _kind_and_body(workload: Object) -> tuple[str, Object]:
    for kind in ("training", "validation", "checkpoint"):
        if workload.get(kind):
            return kind, workload[kind]
    return "", {}


def _metrics(body: Object) -> Object:
    return (body.get("metrics") or {}).get("avgMetrics") or {}


def _metric_names(items: list[tuple[int, str, Object]]) -> list[tuple[str, str]]:
    return sorted({(kind, name) for _, kind, body in items for name in _metrics(body)})


def _workload_row(trial_id: int, kind: str, body: Object, names: list[tuple[str, str]]) -> list[Any]:
    values = [_metrics(body).get(name) if kind == of else None for of, name in names]
    return [
        trial_id,
        body.get("totalBatches"),
        kind,
        wording.state(body.get("state") or "COMPLETED"),
        wording.when(body.get("endTime")),
        body.get("uuid"),
        *(wording.compact(value) if isinstance(value, dict | list) else value for value in values),
    ]


def _write_files(directory: Path, sheets: list[Sheet]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, sheet in zip(("experiments", "trials", "workloads"), sheets, strict=True):
        path = directory / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            output.write_csv(file, sheet.headers, sheet.rows)
        print(path, file=sys.stderr)

"""`det experiment describe`, and code shared with `det trial describe` (client spec, section 5)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from determined.cli import formatting, output
from determined.cli.grammar import arg
from determined.cli.log_cause import read_log_cause_of_experiment
from determined.transport.rest import Session

Object = dict[str, Any]
WORKLOADS_PER_PAGE = 5000


class Sheet(NamedTuple):
    """A table with a title."""

    title: str
    headers: list[str]
    rows: list[list[Any]]


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of ids like 1,2,3") from error


DESCRIBE_ARGS = (
    arg("experiment_ids", type=_ids, help="one id, or several separated by commas"),
    arg("--metrics", action="store_true", help="show the metrics of each workload"),
    arg("--csv", action="store_true", help="write CSV"),
    arg("--json", action="store_true", help="write the master's response"),
    arg("--outdir", type=Path, metavar="DIR", help="write three CSV files to this directory"),
)


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show experiments, their trials and workloads, followed by the reasons for their states."""
    answers = [session.get(f"/api/v1/experiments/{number}") for number in args.experiment_ids]
    if args.json:
        output.print_json([{"jobSummary": None, **answer} for answer in answers])
        return
    experiments = [answer["experiment"] for answer in answers]
    trials = [trial for experiment in experiments for trial in _trials(session, experiment)]
    workloads = [(trial, workload) for trial in trials for workload in read_workloads(session, trial["id"])]
    sheets = [experiment_sheet(experiments), trial_sheet(trials), step_sheet(workloads, args.metrics)]
    if args.outdir:
        _write_files(args.outdir, sheets)
        return
    show_sheets(sheets, args.csv)
    if not args.csv:
        show_reasons("Experiment", experiments)
        show_reasons("Trial", trials)
        for experiment in experiments:
            failed = experiment["state"] == "STATE_ERROR"
            if failed and (cause := read_log_cause_of_experiment(session, experiment["id"])):
                print(f"\n{cause}")


def read_workloads(session: Session, trial_id: int) -> list[Object]:
    """Return the workloads of a trial, each as `{"training" | "validation" | "checkpoint": ...}`."""
    workloads: list[Object] = []
    # In pages: the master refuses an answer that would be too large for it.
    while True:
        page = {"limit": WORKLOADS_PER_PAGE, "offset": len(workloads)}
        answer = session.get(f"/api/v1/trials/{trial_id}/workloads", page)
        workloads += answer["workloads"]
        if not answer["workloads"] or len(workloads) >= answer.get("pagination", {}).get("total", 0):
            return workloads


def show_sheets(sheets: Iterable[Sheet], as_csv: bool, bare_first: bool = False) -> None:
    """Print tables, each below its title and separated by an empty line.

    Args:
        sheets: The tables to print.
        as_csv: Print CSV for programs. It includes the titles, as in 0.25.
        bare_first: In CSV, omit the title of the first table.
    """
    for number, sheet in enumerate(sheets):
        if number:
            print()
        if number or not (as_csv and bare_first):
            print(f"{sheet.title}:")
        output.table(sheet.headers, sheet.rows, as_csv=as_csv)


def show_reasons(kind: str, objects: Iterable[Object]) -> None:
    """Print why each object is in its state, if the master reports it."""
    for shown in objects:
        if reason := shown.get("stateReason"):
            state = formatting.state(shown["state"])
            print(f"\n{kind} {shown['id']} is {state}: {output.harmless(reason)}")


def experiment_sheet(experiments: list[Object]) -> Sheet:
    """Return a table with one row per experiment."""
    headers = ["Experiment ID", "State", "Progress", "Started", "Ended", "Name", "Description", "Archived"]
    headers += ["Resource Pool", "Labels"]
    return Sheet("Experiment", headers, [_experiment_row(experiment) for experiment in experiments])


def trial_sheet(trials: list[Object]) -> Sheet:
    """Return a table with one row per trial. The columns of 0.25 come first."""
    headers = [
        "Trial ID",
        "Experiment ID",
        "State",
        "Started",
        "Ended",
        "H-Params",
        "Restarts",
        "# of Batches",
    ]
    return Sheet("Trials", headers, [_trial_row(trial) for trial in trials])


def step_sheet(workloads: list[tuple[Object, Object]], with_metrics: bool) -> Sheet:
    """Return a table with one row per trial and number of batches, optionally with a column per metric."""
    steps: dict[tuple[int, int], Object] = {}
    for trial, workload in workloads:
        kind, body = kind_and_body(workload)
        steps.setdefault((trial["id"], body.get("totalBatches") or 0), {})[kind] = body
    training, validation = (
        _names(steps, kind) if with_metrics else [] for kind in ("training", "validation")
    )
    headers = ["Trial ID", "# of Batches", "State", "Report Time"]
    headers += [f"Training Metric: {name}" for name in training]
    headers += ["Checkpoint State", "Checkpoint Report Time", "Validation State", "Validation Report Time"]
    headers += [f"Validation Metric: {name}" for name in validation]
    rows = [
        [
            *at,
            *_state_and_time(step.get("training")),
            *_values(step.get("training"), training),
            *_state_and_time(step.get("checkpoint")),
            *_state_and_time(step.get("validation")),
            *_values(step.get("validation"), validation),
            step.get("checkpoint", {}).get("uuid"),
        ]
        for at, step in steps.items()
    ]
    return Sheet("Workloads", [*headers, "Checkpoint UUID"], rows)


def _trials(session: Session, experiment: Object) -> list[Object]:
    answer = session.get(f"/api/v1/experiments/{experiment['id']}/trials", {"limit": 0})
    trials: list[Object] = answer["trials"]
    return trials


def _experiment_row(experiment: Object) -> list[Any]:
    return [
        experiment["id"],
        formatting.state(experiment["state"]),
        formatting.percent(experiment.get("progress")),
        formatting.when(experiment.get("startTime")),
        formatting.when(experiment.get("endTime")),
        experiment.get("name"),
        experiment.get("description"),
        experiment.get("archived"),
        experiment.get("resourcePool"),
        formatting.listed(experiment.get("labels")),
    ]


def _trial_row(trial: Object) -> list[Any]:
    return [
        trial["id"],
        trial.get("experimentId"),
        formatting.state(trial["state"]),
        formatting.when(trial.get("startTime")),
        formatting.when(trial.get("endTime")),
        formatting.compact(trial.get("hparams")),
        trial.get("restarts"),
        trial.get("totalBatchesProcessed"),
    ]


def kind_and_body(workload: Object) -> tuple[str, Object]:
    """Return the kind of a workload, and its data."""
    for kind in ("training", "validation", "checkpoint"):
        if workload.get(kind):
            return kind, workload[kind]
    return "", {}


def _metrics(body: Object) -> Object:
    return (body.get("metrics") or {}).get("avgMetrics") or {}


def _names(steps: dict[tuple[int, int], Object], kind: str) -> list[str]:
    return sorted({name for step in steps.values() for name in _metrics(step.get(kind) or {})})


def _state_and_time(body: Object | None) -> list[Any]:
    if body is None:
        return [None, None]
    return [formatting.state(body.get("state") or "COMPLETED"), formatting.when(body.get("endTime"))]


def _values(body: Object | None, names: list[str]) -> list[Any]:
    values = [_metrics(body or {}).get(name) for name in names]
    return [formatting.compact(value) if isinstance(value, dict | list) else value for value in values]


def _write_files(directory: Path, sheets: list[Sheet]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, sheet in zip(("experiments", "trials", "workloads"), sheets, strict=True):
        path = directory / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            output.write_csv(file, sheet.headers, sheet.rows)
        print(path, file=sys.stderr)

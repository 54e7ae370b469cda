"""`det experiment`: searches and single training runs (client spec, section 5)."""

from __future__ import annotations

import argparse
import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from determined.cli import download as downloads
from determined.cli import formatting, output, trial_logs
from determined.cli.experiment_change import CHILDREN
from determined.cli.experiment_create import CREATE_ARGS, create, is_local
from determined.cli.experiment_describe import DESCRIBE_ARGS, describe
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.cli.log_cause import read_log_cause_of_experiment
from determined.cli.paging import paging_args, read_pages
from determined.common.api import errors
from determined.transport import identity, log_stream
from determined.transport.rest import Session, is_passing

Object = dict[str, Any]

_ID = arg("experiment_id", type=int, help="number of the experiment")
_CSV = arg("--csv", action="store_true", help="write CSV")
_FAILED_POLLS = 10


def list_experiments(session: Session, args: argparse.Namespace) -> None:
    """List the user's own experiments, or all."""
    params = {} if args.all else {"archived": "false", "users": identity.current_user(session)}
    if not args.json:
        params["lean"] = "true"
    if args.disk:
        params |= {"sortBy": "SORT_BY_CHECKPOINT_SIZE", "orderBy": "ORDER_BY_DESC"}
    experiments = read_pages(session, "/api/v1/experiments", "experiments", args, params)
    if args.json:
        output.print_json(experiments)
    else:
        show_list(experiments, args.show_project, args.all, args.csv, disk=args.disk)


def show_list(
    experiments: list[Object], places: bool, archived: bool, as_csv: bool = False, disk: bool = False
) -> None:
    """Print experiments as a table.

    Optionally with workspace and project, whether each is archived, and what its checkpoints take.
    """
    headers = ["ID", "Owner", "Name", "Parent ID", "State", "Progress", "Started", "Ended", "Resource Pool"]
    headers = ["Workspace", "Project"] * places + headers + ["Archived"] * archived
    headers += ["Checkpoints", "Checkpoint Size"] * disk
    rows = [
        _list_row(experiment, places, archived) + (_disk(experiment) if disk else [])
        for experiment in experiments
    ]
    output.table(headers, rows, as_csv=as_csv)


def _disk(experiment: Object) -> list[Any]:
    return [experiment["checkpointCount"], formatting.size(int(experiment["checkpointSize"]))]


def _list_row(experiment: Object, places: bool, archived: bool) -> list[Any]:
    row = [
        experiment["id"],
        experiment["username"],
        experiment["name"],
        experiment.get("forkedFrom"),
        formatting.state(experiment["state"]),
        formatting.percent(experiment.get("progress")),
        formatting.when(experiment.get("startTime")),
        formatting.when(experiment.get("endTime")),
        experiment.get("resourcePool"),
    ]
    place = [experiment.get("workspaceName"), experiment.get("projectName")] if places else []
    return place + row + ([experiment.get("archived")] if archived else [])


def logs(session: Session, args: argparse.Namespace) -> None:
    """Show the log of the first trial."""
    trials = _trials(session, args.experiment_id)
    if not trials:
        raise errors.NotFoundException(f"experiment {args.experiment_id} has no trial yet")
    first = min(int(trial["id"]) for trial in trials)
    trial_logs.show_logs(session, log_stream.trial(first), args)


def wait(session: Session, args: argparse.Namespace) -> int:
    """Poll until the experiment has ended. Tolerates an unreachable master for some polls."""
    failures = 0
    while True:
        try:
            experiment = _experiment(session, args.experiment_id)
        except errors.BadRequestException as error:
            failures += 1
            if failures >= _FAILED_POLLS or not is_passing(error):
                raise
        else:
            failures = 0
            if (status := _status_of(experiment)) is not None:
                if cause := status and read_log_cause_of_experiment(session, args.experiment_id):
                    output.complain(cause)
                return status
        time.sleep(args.polling_interval)


def _status_of(experiment: Object) -> int | None:
    number, state = experiment["id"], experiment["state"]
    if state == "STATE_PAUSED":
        raise Failure(f"experiment {number} is paused; 'det experiment activate {number}' resumes it")
    if state == "STATE_COMPLETED":
        output.good(f"Experiment {number} is COMPLETED")
        return 0
    if state in log_stream.ENDED or state == "STATE_DELETED":
        reason = experiment.get("stateReason")
        output.complain(
            f"Experiment {number} is {formatting.state(state)}" + (f": {reason}" if reason else "")
        )
        return 1
    return None


def _act(verb: str, done: str) -> Callable[[Session, argparse.Namespace], None]:
    def run(session: Session, args: argparse.Namespace) -> None:
        session.post(f"/api/v1/experiments/{args.experiment_id}/{verb}")
        print(f"{done} experiment {args.experiment_id}")

    return run


def list_trials(session: Session, args: argparse.Namespace) -> None:
    """List the trials of an experiment."""
    trials = read_pages(session, f"/api/v1/experiments/{args.experiment_id}/trials", "trials", args)
    headers = ["Trial ID", "State", "H-Params", "Started", "Ended", "# of Batches"]
    rows = [
        [
            trial["id"],
            formatting.state(trial["state"]),
            formatting.compact(trial.get("hparams")),
            formatting.when(trial.get("startTime")),
            formatting.when(trial.get("endTime")),
            trial.get("totalBatchesProcessed"),
        ]
        for trial in trials
    ]
    output.table(headers, rows, as_csv=args.csv)


def list_checkpoints(session: Session, args: argparse.Namespace) -> None:
    """List the checkpoints of an experiment, oldest first, or its best ones."""
    path = f"/api/v1/experiments/{args.experiment_id}/checkpoints"
    checkpoints = session.get(path, {"sortBy": "SORT_BY_END_TIME", "limit": 0})["checkpoints"]
    if args.best is not None:
        checkpoints = _best(checkpoints, _experiment(session, args.experiment_id)["config"]["searcher"])[
            : args.best
        ]
    headers = ["Trial ID", "# of Batches", "State", "Validation Metric", "UUID", "Resources", "Size"]
    # Scripts that read the CSV split the files at line ends, as 0.25 writes them; a name may have a comma.
    join: Callable[[list[str]], str] = "\n".join if args.csv else formatting.listed
    output.table(headers, [_checkpoint_row(checkpoint, join) for checkpoint in checkpoints], as_csv=args.csv)


def _best(checkpoints: list[Object], searcher: Object) -> list[Object]:
    """Return the completed checkpoints with a searcher metric, best first."""
    sign = 1 if searcher.get("smaller_is_better", True) else -1
    scored = [
        (float(metric) * sign, checkpoint)
        for checkpoint in checkpoints
        if checkpoint["state"] == "STATE_COMPLETED" and (metric := _searcher_metric(checkpoint)) is not None
    ]
    return [checkpoint for _, checkpoint in sorted(scored, key=lambda pair: (pair[0] != pair[0], pair[0]))]


def _searcher_metric(checkpoint: Object) -> Any:
    return (checkpoint.get("training") or {}).get("searcherMetric")


def _checkpoint_row(checkpoint: Object, join: Callable[[list[str]], str]) -> list[Any]:
    resources = checkpoint.get("resources") or {}
    return [
        (checkpoint.get("training") or {}).get("trialId"),
        (checkpoint.get("metadata") or {}).get("steps_completed"),
        formatting.state(checkpoint["state"]),
        _searcher_metric(checkpoint),
        checkpoint["uuid"],
        join(sorted(resources)),
        formatting.size(sum(int(size) for size in resources.values())),
    ]


def download(session: Session, args: argparse.Namespace) -> None:
    """Download the best checkpoints, each from a different trial."""
    from determined.experimental._experiment import ExperimentReference

    try:
        checkpoints = ExperimentReference(args.experiment_id, session).top_n_checkpoints(
            args.top_n, args.sort_by, args.smaller_is_better
        )
    except (AssertionError, ValueError) as error:
        raise Failure(str(error)) from error
    paths = [
        downloads.fetch(checkpoint, args.output_dir / checkpoint.uuid, args.mode, args.quiet)
        for checkpoint in checkpoints
    ]
    downloads.show(list(zip(checkpoints, paths, strict=True)), args.quiet)


def config(session: Session, args: argparse.Namespace) -> None:
    """Print the completed configuration as YAML."""
    output.print_yaml(_experiment(session, args.experiment_id)["config"])


def download_model_def(session: Session, args: argparse.Namespace) -> None:
    """Write the submitted code as an archive."""
    answer = session.get(f"/api/v1/experiments/{args.experiment_id}/model_def")
    path = args.output_dir / f"experiment_{args.experiment_id}_model_def.tgz"
    args.output_dir.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(answer["b64Tgz"]))
    print(path)


def _experiment(session: Session, number: int) -> Object:
    experiment: Object = session.get(f"/api/v1/experiments/{number}")["experiment"]
    return experiment


def _trials(session: Session, number: int) -> list[Object]:
    trials: list[Object] = session.get(f"/api/v1/experiments/{number}/trials")["trials"]
    return trials


NOUN = Noun(
    "experiment e",
    "start, watch and stop experiments",
    (
        Verb(
            "list ls",
            "list experiments",
            list_experiments,
            (
                arg(
                    "-a", "--all", action="store_true", help="include those of other users and archived ones"
                ),
                arg("--show_project", action="store_true", help="also show workspace and project"),
                arg(
                    "--disk",
                    action="store_true",
                    help="also show how many checkpoints are stored and their size, largest first",
                ),
                *paging_args(),
                one_of(_CSV, arg("--json", action="store_true", help="write the master's response")),
            ),
        ),
        Verb("create", "create an experiment", create, CREATE_ARGS, offline=is_local),
        Verb("describe", "describe experiments", describe, DESCRIBE_ARGS),
        Verb("logs", "show the log of the first trial", logs, (_ID, *trial_logs.LOG_ARGS)),
        Verb(
            "wait",
            "wait for an experiment",
            wait,
            (_ID, arg("--polling-interval", type=float, default=5, metavar="S", help="seconds, default 5")),
        ),
        Verb("pause", "pause an experiment", _act("pause", "Paused"), (_ID,)),
        Verb("activate", "activate an experiment", _act("activate", "Activated"), (_ID,)),
        Verb("cancel", "cancel an experiment", _act("cancel", "Canceled"), (_ID,)),
        Verb("kill", "kill an experiment", _act("kill", "Killed"), (_ID,)),
        *CHILDREN,
        Verb("list-trials lt", "list the trials of an experiment", list_trials, (_ID, *paging_args(), _CSV)),
        Verb(
            "list-checkpoints lc",
            "list the checkpoints of an experiment",
            list_checkpoints,
            (_ID, arg("--best", type=int, metavar="N", help="the N best, by searcher metric"), _CSV),
        ),
        Verb(
            "download",
            "download the best checkpoints of an experiment",
            download,
            (
                _ID,
                arg(
                    "-o",
                    "--output-dir",
                    type=Path,
                    default=Path("checkpoints"),
                    metavar="DIR",
                    help="into DIR/UUID",
                ),
                arg("--top-n", type=int, default=1, metavar="N", help="number of checkpoints, default 1"),
                *downloads.SORT,
                downloads.MODE,
                downloads.QUIET,
            ),
        ),
        Verb("config", "show the configuration of an experiment", config, (_ID,)),
        Verb(
            "download-model-def",
            "download the code of an experiment",
            download_model_def,
            (_ID, arg("--output-dir", type=Path, default=Path(), metavar="DIR", help="default: here")),
        ),
    ),
    default="list",
)

"""`det experiment create` (client spec, section 4)."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from determined import context, yamlfile
from determined.cli import experiment_test_mode, formatting, output, trial_logs
from determined.cli.checkout import commit_of
from determined.cli.config_file import read_config
from determined.cli.failure import Failure
from determined.cli.grammar import arg, one_of
from determined.transport import log_stream, submission
from determined.transport.rest import Session

CREATE_ARGS = (
    arg("config_file", type=Path, help="experiment configuration (YAML)"),
    arg("model_dir", type=Path, help="directory of code that becomes the trials' working directory"),
    arg(
        "-i",
        "--include",
        action="append",
        type=Path,
        default=[],
        metavar="PATH",
        help="additional file or directory to send",
    ),
    arg("-g", "--git", action="store_true", help="record the git commit of the code"),
    arg(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one field; use dots for nested fields",
    ),
    arg("--template", metavar="NAME", help="template that fills in what the configuration leaves out"),
    arg("--project_id", type=int, metavar="N", help="project of the experiment"),
    arg("--local", action="store_true", help="with --test-mode: run here, without a cluster"),
    one_of(
        arg("-f", "--follow-first-trial", action="store_true", help="show the log of the first trial"),
        arg("--paused", action="store_true", help="do not start it yet"),
        arg("-t", "--test-mode", action="store_true", help="only test it with one batch"),
    ),
)

_BAR_FROM_BYTES = 1024 * 1024
_POLL_S = 0.2


def create(session: Session, args: argparse.Namespace) -> int | None:
    """Submit the configuration and the code. With `-f`, show the first trial's log."""
    experiment_test_mode.check_options(args)
    text, config = _config_of(args.config_file, args.config)
    if args.local:
        experiment_test_mode.here(config, args.model_dir)
        return None
    commit = commit_of(args.model_dir) if args.git else {}
    files = _pack(args.model_dir, args.include)
    body = {"config": text, "modelDefinition": files, "activate": not args.paused, **commit}
    body |= {"template": args.template} if args.template else {}
    body |= {"projectId": args.project_id} if args.project_id is not None else {}
    if args.test_mode:
        return experiment_test_mode.on_cluster(session, config, body)
    answer = _send(session, body)
    experiment_id = int(answer["experiment"]["id"])
    print(f"Created experiment {experiment_id}", flush=True)
    for warning in submission.warnings_of(answer):
        output.warn(warning)
    return _follow(session, experiment_id) if args.follow_first_trial else None


def merged(config: dict[str, Any], overrides: list[str]) -> dict[str, Any]:
    """Apply `key=value` overrides to the configuration, in order. Raises `Failure` for one without `=`."""
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise Failure(f"'--config {override}' is not of the form KEY=VALUE, as in resources.slots=4")
        value: Any = _value(text)
        for part in reversed(key.split(".")):
            # A list, of which `--config bind_mounts.host_path=/data` gives one item by its keys.
            value = {part: [value] if part == "bind_mounts" and not isinstance(value, list) else value}
        config = _deep_merge(config, value)
    return config


def is_local(args: argparse.Namespace) -> bool:
    """Whether the command needs no master."""
    return bool(args.local)


def _config_of(path: Path, overrides: list[str]) -> tuple[str, dict[str, Any]]:
    """The configuration as text and content; the text is as written unless something is overridden."""
    text, config = read_config(path)
    # As written, with its comments, unless it has to be composed anew.
    if not overrides:
        return text, config
    config = merged(config, overrides)
    return yamlfile.dump(config), config


def _value(text: str) -> Any:
    try:
        if not text.startswith(("[", "{")) and "," in text:
            # A list without brackets, as 0.25 accepted it.
            return [yamlfile.parse(part) for part in text.split(",")]
        return yamlfile.parse(text)
    except yamlfile.YamlProblem as error:
        raise Failure(f"cannot read the value '{text}' of --config: {error}") from error


def _deep_merge(base: Any, over: Any) -> Any:
    # Not merged with what was there: only maps are merged, a list replaces a list.
    if not isinstance(over, dict):
        return over
    base = base if isinstance(base, dict) else {}
    return {**base, **{key: _deep_merge(base.get(key), value) for key, value in over.items()}}


def _pack(model_dir: Path, includes: list[Path]) -> list[dict[str, Any]]:
    on_terminal = sys.stdout.isatty()
    shown = _short(model_dir)
    so_far = (0, 0)

    def on_file(size: int, count: int) -> None:
        nonlocal so_far
        so_far = (size, count)
        if on_terminal:
            print(f"\r{_progress_line(shown, size, count)}", end="", flush=True)

    try:
        files = context.pack(model_dir, includes, on_file)
    except (context.ContextError, OSError) as error:
        print()
        raise Failure(str(error)) from error
    print(("\r" if on_terminal else "") + _progress_line(shown, *so_far), flush=True)
    return files


def _short(model_dir: Path) -> str:
    """Return the directory as shown in the progress line."""
    return f".../{model_dir.resolve().name}"


def _progress_line(shown: str, size: int, count: int) -> str:
    return f"Preparing files ({shown}) to send to master... {formatting.size(size)} and {count} files"


def _send(session: Session, body: dict[str, Any]) -> Any:
    size = sum(len(item["content"]) for item in body["modelDefinition"])
    with _bar(size) as on_sent:
        return submission.submit(session, body, on_sent)


@contextlib.contextmanager
def _bar(size: int) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar on a terminal for large uploads; nothing for scripts and small uploads."""
    if size < _BAR_FROM_BYTES or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    # To stderr and removed at the end, so that no captured output contains it.
    columns = ("Sending", BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=size)
        yield lambda sent: progress.update(task, completed=sent)


def _follow(session: Session, experiment_id: int) -> int | None:
    try:
        print("Waiting for first trial to begin...", flush=True)
        trial_id = _first_trial(session, experiment_id)
        print(f"Following first trial with ID {trial_id}", flush=True)
        for record in log_stream.follow(session, log_stream.trial(trial_id)):
            trial_logs.show_line(record, flush=True)
    except KeyboardInterrupt:
        output.warn(
            f"\nExperiment {experiment_id} keeps running; see 'det experiment logs -f {experiment_id}'."
        )
        raise
    trial_logs.say_ended(log_stream.trial(trial_id))
    return _status_of(session, experiment_id, trial_id)


def _status_of(session: Session, experiment_id: int, trial_id: int) -> int | None:
    """Return 1 if the followed trial or its experiment failed. Otherwise the search may still be running."""
    counts: dict[str, dict[str, Any]] = {
        "trial": session.get(f"/api/v1/trials/{trial_id}")["trial"],
        "experiment": session.get(f"/api/v1/experiments/{experiment_id}")["experiment"],
    }
    for noun, states in counts.items():
        if states["state"] == "STATE_ERROR":
            reason = states.get("stateReason")
            output.complain(
                f"{noun.capitalize()} {states['id']} is ERROR" + (f": {reason}" if reason else "")
            )
            return 1
    return None


def _first_trial(session: Session, experiment_id: int) -> int:
    """Return the trial that started first. Raises `Failure` if the experiment ends without a trial."""
    while True:
        # Before the state: an experiment may end between the two requests, and has its trials then.
        trials = session.get(f"/api/v1/experiments/{experiment_id}/trials")["trials"]
        if trials:
            # Not always the one with the smallest id. "~" sorts after all times.
            return int(min(trials, key=lambda trial: (trial.get("startTime") or "~", trial["id"]))["id"])
        experiment = session.get(f"/api/v1/experiments/{experiment_id}")["experiment"]
        if experiment["state"] in log_stream.ENDED:
            reason = experiment.get("stateReason") or "it has no trial"
            raise Failure(f"experiment {experiment_id} is {formatting.state(experiment['state'])}: {reason}")
        time.sleep(_POLL_S)

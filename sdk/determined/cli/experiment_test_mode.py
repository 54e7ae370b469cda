"""`det experiment create --test-mode`: a shortened run, on the cluster or locally (client spec, 4.3)."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from det_contracts.expconf.entrypoint import TRIAL_CLASS
from determined.cli import formatting, output, trial_logs
from determined.cli.failure import Failure
from determined.transport import log_stream, submission
from determined.transport.rest import Session

Object = dict[str, Any]
_POLL_S = 0.3
_STAGES = ("Scheduling task", "Testing training", "Testing validation", "Testing checkpointing")
_UNSEEN = {
    "training": "reported no training metrics",
    "validation": "reported no validation metrics",
    "checkpointing": "stored no checkpoint",
}
_STAGE_OF = {"training": 1, "validating": 2, "checkpointing": 3}
_SAVE_NOTHING = {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 0}


def here(config: Object, model_dir: Path) -> None:
    """Train one batch in this process. Raises `Failure` if that is impossible or fails."""
    from determined.experimental import test_one_batch

    entrypoint = config.get("entrypoint")
    if not isinstance(entrypoint, str) or not re.fullmatch(TRIAL_CLASS, entrypoint):
        raise Failure(
            f"--local --test-mode trains a class named as MODULE:CLASS, the entrypoint is {entrypoint!r}; "
            "run the script directly instead, which works without a cluster"
        )
    if not model_dir.is_dir():
        raise Failure(f"'{model_dir}' must be a directory")
    with _inside(model_dir):
        try:
            from determined.exec.harness import trial_class

            test_one_batch(trial_class(entrypoint), config)
        # It would end `det` without a word about why.
        except SystemExit as error:
            raise Failure(f"the model's code called sys.exit({error.code!r})") from error
        except (ImportError, ValueError, TypeError, AssertionError) as error:
            raise Failure(f"{type(error).__name__}: {error}") from error


def on_cluster(session: Session, config: Object, body: Object) -> int:
    """Let the master check the configuration, then run the shortened experiment. Returns the exit status."""
    print("Validating experiment configuration...", end="", flush=True)
    try:
        # The configuration as it is: the shortened one would hide mistakes in what it replaces.
        submission.submit(session, {**body, "validateOnly": True, "activate": False})
    except BaseException:
        # Ends the line that the error would otherwise continue.
        print(flush=True)
        raise
    print(" succeeded! 🎉", flush=True)
    from determined import yamlfile

    reduced = {**body, "config": yamlfile.dump(shortened(config)), "activate": True}
    answer = submission.submit(session, reduced)
    experiment_id = int(answer["experiment"]["id"])
    print(f"Created test experiment {experiment_id}", flush=True)
    return _watch(session, experiment_id)


def shortened(config: Object) -> Object:
    """Return the configuration reduced to one batch, one validation, and no permanent checkpoint."""
    from determined.experimental._test_run import drawn

    searcher = config.get("searcher") or {}
    shared_fields = {key: searcher[key] for key in ("metric", "smaller_is_better") if key in searcher}
    return {
        **config,
        "description": f"[test-mode] {config.get('description') or ''}".rstrip(),
        "scheduling_unit": 1,
        "min_validation_period": {"batches": 1},
        "checkpoint_storage": {**(config.get("checkpoint_storage") or {}), **_SAVE_NOTHING},
        "searcher": {"name": "single", **shared_fields, "max_length": {"batches": 1}},
        "hyperparameters": drawn(config.get("hyperparameters") or {}, random.Random()),
        "max_restarts": 0,
    }


def _watch(session: Session, experiment_id: int) -> int:
    shown, trial_id = 0, None
    _tell(_STAGES[:1])
    while True:
        experiment = session.get(f"/api/v1/experiments/{experiment_id}")["experiment"]
        trials = session.get(f"/api/v1/experiments/{experiment_id}/trials")["trials"]
        if trials:
            trial_id = int(trials[0]["id"])
            trial = session.get(f"/api/v1/trials/{trial_id}")["trial"]
            stage = max(shown, _STAGE_OF.get(trial.get("runnerState") or "", 0))
            _tell(_STAGES[shown + 1 : stage + 1])
            shown = stage
        if experiment["state"] in log_stream.ENDED:
            break
        time.sleep(_POLL_S)
    return _verdict(session, experiment, trial_id, shown)


def _verdict(session: Session, experiment: Object, trial_id: int | None, shown: int) -> int:
    state = experiment["state"]
    if state == "STATE_COMPLETED":
        return _succeeded(session, trial_id, shown)
    if state == "STATE_CANCELED":
        output.complain(f"Model definition test (experiment {experiment['id']}) was canceled.")
        return 1
    if trial_id is not None:
        for record in log_stream.read(session, log_stream.trial(trial_id)):
            trial_logs.show_line(record, flush=False)
    reason = experiment.get("stateReason")
    output.complain(
        f"Model definition test failed: experiment {experiment['id']} is {formatting.state(state)}"
        + (f": {reason}" if reason else "")
    )
    return 1


def _succeeded(session: Session, trial_id: int | None, shown: int) -> int:
    """Report which of training, validation and checkpointing have run."""
    missing = _missing(session, trial_id) if trial_id is not None else [*_UNSEEN]
    reached = [stage for stage in _STAGES[1:] if stage.split()[-1] not in missing]
    _tell(tuple(stage for stage in reached if stage not in _STAGES[: shown + 1]))
    if not missing:
        output.good("Model definition test succeeded! 🎉")
        return 0
    output.good("The script ran to completion.")
    reasons = _listed([_UNSEEN[name] for name in missing])
    output.warn(f"Not tested: {', '.join(missing)}. The script {reasons}.")
    return 0


def _missing(session: Session, trial_id: int) -> list[str]:
    """Return the stages without a result."""
    path = f"/api/v1/trials/{trial_id}"
    groups = session.get(path)["trial"].get("summaryMetrics") or {}
    results = {
        "training": groups.get("avg_metrics"),
        "validation": groups.get("validation_metrics"),
        # Includes deleted checkpoints, because a test keeps none.
        "checkpointing": session.get(f"{path}/checkpoints").get("checkpoints"),
    }
    return [name for name, was_seen in results.items() if not was_seen]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _tell(stages: tuple[str, ...]) -> None:
    for stage in stages:
        print(f"{stage}...", flush=True)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Set up the process like a trial: working directory, and first entry of the module path."""
    before, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path


def check_options(args: argparse.Namespace) -> None:
    """Raise `Failure` for `--local` without `--test-mode`."""
    if args.local and not args.test_mode:
        raise Failure("--local requires --test-mode; run the script directly to train without a cluster")

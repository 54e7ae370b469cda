"""Functions for using a cluster: `from determined.experimental import client` (client spec, section 2).

All functions share one connection per process. It is opened by `login` or on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from determined import _absent
from determined.common.api import Session
from determined.experimental._checkpoint import Checkpoint, CheckpointTrainingMetadata
from determined.experimental._client_connection import connected, connection, current, login, logout
from determined.experimental._client_models import (
    create_model,
    get_model,
    get_model_by_id,
    get_model_labels,
    get_models,
)
from determined.experimental._client_users import (
    add_oauth_client,
    create_user,
    get_session_username,
    get_user_by_id,
    get_user_by_name,
    list_oauth_clients,
    list_users,
    remove_oauth_client,
    whoami,
)
from determined.experimental._determined import Determined
from determined.experimental._enums import (
    CheckpointOrderBy,
    CheckpointSortBy,
    CheckpointState,
    DownloadMode,
    ExperimentState,
    LogLevel,
    ModelOrderBy,
    ModelSortBy,
    TrialOrderBy,
    TrialSortBy,
)
from determined.experimental._experiment import ExperimentReference
from determined.experimental._metrics import TrainingMetrics, ValidationMetrics
from determined.experimental._model import Model
from determined.experimental._model_version import ModelVersion
from determined.experimental._trial import TrialReference
from determined.experimental._user import User

__all__ = [
    "Checkpoint",
    "CheckpointOrderBy",
    "CheckpointSortBy",
    "CheckpointState",
    "CheckpointTrainingMetadata",
    "Determined",
    "DownloadMode",
    "Experiment",
    "ExperimentReference",
    "ExperimentState",
    "LogLevel",
    "Model",
    "ModelOrderBy",
    "ModelSortBy",
    "ModelVersion",
    "Session",
    "TrainingMetrics",
    "Trial",
    "TrialOrderBy",
    "TrialReference",
    "TrialSortBy",
    "User",
    "ValidationMetrics",
    "add_oauth_client",
    "create_experiment",
    "create_model",
    "create_user",
    "get_checkpoint",
    "get_experiment",
    "get_model",
    "get_model_by_id",
    "get_model_labels",
    "get_models",
    "get_session_username",
    "get_trial",
    "get_user_by_id",
    "get_user_by_name",
    "list_oauth_clients",
    "list_users",
    "login",
    "logout",
    "remove_oauth_client",
    "stream_trials_training_metrics",
    "stream_trials_validation_metrics",
    "whoami",
]

__path__: list[str] = []
# Scripts of 0.25 take their REST session from `client._determined._session`, the one place that has it.
_absent.explain_in(__name__, _determined=current)

Experiment = ExperimentReference
Trial = TrialReference


@connected
def create_experiment(
    config: str | Path | dict[str, Any],
    model_dir: str | Path,
    includes: Sequence[str | Path] | None = None,
) -> ExperimentReference:
    """Submit an experiment and activate it.

    Args:
        config: The experiment configuration, as a dict or the path of a YAML file.
        model_dir: Directory with the code. Files that match `.detignore` are left out.
        includes: Additional files and directories to send.

    Returns:
        The experiment. It may not have started yet.

    Raises:
        ValueError: If `config` or `model_dir` has the wrong type or cannot be sent.
        BadRequestException: If the cluster rejects the configuration. The message lists all errors.

    Example:
        ```python
        experiment = client.create_experiment("config.yaml", model_dir=".")
        state = experiment.wait()
        best = experiment.top_checkpoint()
        print(state.name, best.uuid, best.training.validation_metrics["avgMetrics"])
        ```
    """
    return connection().create_experiment(config, model_dir, includes)


@connected
def get_experiment(experiment_id: int) -> ExperimentReference:
    """Return an experiment without contacting the cluster.

    An unknown id raises `NotFoundException` on first use.

    Args:
        experiment_id: Id of the experiment.

    Returns:
        A reference to the experiment.

    Example:
        ```python
        experiment = client.get_experiment(7)
        experiment.pause()
        ```
    """
    return connection().get_experiment(experiment_id)


@connected
def get_trial(trial_id: int) -> TrialReference:
    """Return a trial without contacting the cluster. An unknown id raises `NotFoundException` on first use.

    Args:
        trial_id: Id of the trial.

    Returns:
        A reference to the trial.

    Example:
        ```python
        path = client.get_trial(12).top_checkpoint().download()
        ```
    """
    return connection().get_trial(trial_id)


@connected
def get_checkpoint(uuid: str) -> Checkpoint:
    """Return a checkpoint.

    Args:
        uuid: Id of the checkpoint.

    Returns:
        The checkpoint, with its metadata.

    Raises:
        NotFoundException: If there is no such checkpoint.

    Example:
        ```python
        path = client.get_checkpoint(uuid).download()
        ```
    """
    return connection().get_checkpoint(uuid)


@connected
def stream_trials_training_metrics(trial_ids: list[int]) -> Iterator[TrainingMetrics]:
    """Return the training metric reports of the given trials, read as you iterate.

    Args:
        trial_ids: Ids of the trials.

    Returns:
        One record per report, ordered by trial, run and steps.

    Example:
        ```python
        for report in client.stream_trials_training_metrics([7, 8]):
            print(report.trial_id, report.steps_completed, report.metrics["loss"])
        ```
    """
    return connection().stream_trials_training_metrics(trial_ids)


@connected
def stream_trials_validation_metrics(trial_ids: list[int]) -> Iterator[ValidationMetrics]:
    """Return the validation metric reports of the given trials, read as you iterate.

    Args:
        trial_ids: Ids of the trials.

    Returns:
        One record per report, ordered by trial, run and steps.

    Example:
        ```python
        for report in client.stream_trials_validation_metrics([12, 13]):
            print(report.trial_id, report.metrics)
        ```
    """
    return connection().stream_trials_validation_metrics(trial_ids)

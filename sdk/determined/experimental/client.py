"""The cluster as functions: `from determined.experimental import client` (client spec, section 2).

All functions share one connection per process, made by `login` or at the first use.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from determined import _absent
from determined.common.api import Session
from determined.experimental._checkpoint import Checkpoint, CheckpointTrainingMetadata
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
from determined.experimental._model import Model, ModelVersion
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
_absent.explain_in(__name__)

Experiment = ExperimentReference
Trial = TrialReference

logger = logging.getLogger("determined.client")
_determined: Determined | None = None

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def login(
    master: str | None = None,
    user: str | None = None,
    password: str | None = None,
    cert_path: str | None = None,
    cert_name: str | None = None,
    noverify: bool = False,
) -> None:
    """Connect to a cluster, as one user. Without it the first call of the client connects by the defaults.

    Args:
        master: Address as `HOST:PORT` or `http(s)://HOST:PORT`. Default: `DET_MASTER`, else `localhost:8080`.
        user: Who to be. Default: `DET_USER` with `DET_PASS`, else who has logged in with `det user login`,
            else `determined`.
        password: The user's password. Not needed where a login of this user is stored; on a terminal it is
            asked for.
        cert_path: File with the certificates to check the master's against, for a master with TLS.
        cert_name: The host name that the master's certificate must have, if it is not that of the address.
        noverify: True to check no certificate.

    Raises:
        ValueError: There is a connection already, or the address is none.
        MasterNotFoundException: Nobody answers at the address.
        UnauthenticatedException: The password is wrong.

    Example:
        ```python
        from determined.experimental import client

        client.login(master="https://cluster.example.com", user="ada")
        ```
    """
    global _determined
    if _determined is not None:
        raise ValueError(
            "call client.login() once, before any other call of the client; for several connections create "
            "client.Determined objects"
        )
    _determined = Determined(master, user, password, cert_path, cert_name, noverify)


def logout() -> None:
    """End the session of this connection's user: its token is given back and forgotten. Without a connection
    there is only a warning.
    """
    if _determined is None:
        logger.warning("client.logout() does nothing: there was no login before")
        return
    _determined.logout()


def _connected(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Connects before the first call."""

    @functools.wraps(function)
    def call(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        if _determined is None:
            login()
        return function(*args, **kwargs)

    return call


def _connection() -> Determined:
    if _determined is None:
        raise RuntimeError("there is no connection: call client.login() first")
    return _determined


@_connected
def create_experiment(
    config: str | Path | dict[str, Any],
    model_dir: str | Path,
    includes: Sequence[str | Path] | None = None,
) -> ExperimentReference:
    """Submit an experiment and activate it.

    Args:
        config: The experiment configuration, as a dict or as the path of a YAML file.
        model_dir: Directory with the code; files that `.detignore` names are left out.
        includes: Further files and directories to send along.

    Returns:
        The experiment, which may not have started yet.

    Raises:
        ValueError: `config` or `model_dir` is of another kind, or cannot be sent.
        BadRequestException: The cluster refuses the configuration; the message names all faults.

    Example:
        ```python
        experiment = client.create_experiment("config.yaml", model_dir=".")
        state = experiment.wait()
        best = experiment.top_checkpoint()
        print(state.name, best.uuid, best.training.validation_metrics["avgMetrics"])
        ```
    """
    return _connection().create_experiment(config, model_dir, includes)


@_connected
def get_experiment(experiment_id: int) -> ExperimentReference:
    """Return an experiment. Nothing is asked yet: a wrong id raises `NotFoundException` at the first use.

    Args:
        experiment_id: Id of the experiment.
    """
    return _connection().get_experiment(experiment_id)


@_connected
def get_trial(trial_id: int) -> TrialReference:
    """Return a trial. Nothing is asked yet: a wrong id raises `NotFoundException` at the first use.

    Args:
        trial_id: Id of the trial.
    """
    return _connection().get_trial(trial_id)


@_connected
def get_checkpoint(uuid: str) -> Checkpoint:
    """Return a checkpoint.

    Args:
        uuid: Id of the checkpoint.

    Raises:
        NotFoundException: There is none.

    Example:
        ```python
        path = client.get_checkpoint(uuid).download()
        ```
    """
    return _connection().get_checkpoint(uuid)


@_connected
def create_model(name: str, description: str | None = "", metadata: dict[str, Any] | None = None) -> Model:
    """Create a model in the registry, to which checkpoints are then registered as versions.

    Args:
        name: Name of the model, which no other model has.
        description: A text for people.
        metadata: Values of your own, by key.

    Returns:
        The model.

    Example:
        ```python
        model = client.create_model("digits")
        model.register_version(experiment.top_checkpoint().uuid)
        ```
    """
    return _connection().create_model(name, description, metadata)


@_connected
def get_model(identifier: str | int) -> Model:
    """Return a model of the registry.

    Args:
        identifier: Its name or its id.

    Raises:
        NotFoundException: There is none.
    """
    return _connection().get_model(identifier)


@_connected
def get_model_by_id(model_id: int) -> Model:
    """Return a model of the registry. Deprecated: `get_model` takes ids, too.

    Args:
        model_id: Id of the model.

    Raises:
        NotFoundException: There is none.
    """
    return _connection().get_model_by_id(model_id)


@_connected
def get_models(
    sort_by: ModelSortBy = ModelSortBy.NAME,
    order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
    name: str | None = "",
    description: str | None = "",
) -> list[Model]:
    """Return the models of the registry that match.

    Args:
        sort_by: What to sort by.
        order_by: Direction of the sort.
        name: A part of the name.
        description: A part of the description.
    """
    return _connection().get_models(sort_by, order_by, name or None, description or None)


@_connected
def get_model_labels() -> list[str]:
    """Return all labels of models, the most used first."""
    return _connection().get_model_labels()


@_connected
def stream_trials_training_metrics(trial_ids: list[int]) -> Iterator[TrainingMetrics]:
    """Return the reports of training metrics of some trials, read as they are iterated.

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
    return _connection().stream_trials_training_metrics(trial_ids)


@_connected
def stream_trials_validation_metrics(trial_ids: list[int]) -> Iterator[ValidationMetrics]:
    """Return the reports of validation metrics of some trials, read as they are iterated.

    Args:
        trial_ids: Ids of the trials.

    Returns:
        One record per report, ordered by trial, run and steps.
    """
    return _connection().stream_trials_validation_metrics(trial_ids)


@_connected
def create_user(username: str, admin: bool, password: str | None = None, remote: bool = False) -> User:
    """Create a user, who may log in at once. Administrators only.

    Args:
        username: Name to log in with.
        admin: Whether the user is an administrator.
        password: Password to log in with; empty if not given.
        remote: Whether the user logs in by the identity provider instead of a password.

    Returns:
        The user.
    """
    return _connection().create_user(username, admin, password, remote)


@_connected
def get_user_by_id(user_id: int) -> User:
    """Return a user.

    Args:
        user_id: Id of the user.

    Raises:
        NotFoundException: There is none.
    """
    return _connection().get_user_by_id(user_id)


@_connected
def get_user_by_name(user_name: str) -> User:
    """Return a user.

    Args:
        user_name: Name that the user logs in with.

    Raises:
        NotFoundException: There is none.
    """
    return _connection().get_user_by_name(user_name)


@_connected
def whoami() -> User:
    """Return the user of this connection."""
    return _connection().whoami()


@_connected
def list_users() -> list[User]:
    """Return all users."""
    return _connection().list_users()


@_connected
def get_session_username() -> str:
    """Return the name of the user of this connection."""
    return _connection().get_session_username()


@_connected
def add_oauth_client(domain: str, name: str) -> NoReturn:
    """Refuse: OAuth clients belonged to the enterprise edition of Determined. Programs use API tokens.

    Args:
        domain: Not used.
        name: Not used.

    Raises:
        EnterpriseOnlyError: Always.
    """
    _connection().add_oauth_client(domain, name)


@_connected
def list_oauth_clients() -> NoReturn:
    """Refuse: OAuth clients belonged to the enterprise edition of Determined. Programs use API tokens.

    Raises:
        EnterpriseOnlyError: Always.
    """
    _connection().list_oauth_clients()


@_connected
def remove_oauth_client(client_id: str) -> NoReturn:
    """Refuse: OAuth clients belonged to the enterprise edition of Determined. Programs use API tokens.

    Args:
        client_id: Not used.

    Raises:
        EnterpriseOnlyError: Always.
    """
    _connection().remove_oauth_client(client_id)

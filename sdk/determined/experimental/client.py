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
__getattr__ = _absent.getter(__name__)

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
    """Connect, before anything else is called; ValueError once there is a connection."""
    global _determined
    if _determined is not None:
        raise ValueError(
            "client.login() comes before any other call of the client, and once; for several connections "
            "make objects of client.Determined"
        )
    _determined = Determined(master, user, password, cert_path, cert_name, noverify)


def logout() -> None:
    """Give the token back and forget it; without a connection only a warning."""
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
        raise RuntimeError("there is no connection: client.login() comes first")
    return _determined


@_connected
def create_experiment(
    config: str | Path | dict[str, Any],
    model_dir: str | Path,
    includes: Sequence[str | Path] | None = None,
) -> ExperimentReference:
    """Hand in and activate an experiment, see `Determined.create_experiment`."""
    return _connection().create_experiment(config, model_dir, includes)


@_connected
def get_experiment(experiment_id: int) -> ExperimentReference:
    """Asks nothing yet: a wrong id shows at the first use."""
    return _connection().get_experiment(experiment_id)


@_connected
def get_trial(trial_id: int) -> TrialReference:
    """Asks nothing yet: a wrong id shows at the first use."""
    return _connection().get_trial(trial_id)


@_connected
def get_checkpoint(uuid: str) -> Checkpoint:
    """Raises `NotFoundException`."""
    return _connection().get_checkpoint(uuid)


@_connected
def create_model(name: str, description: str | None = "", metadata: dict[str, Any] | None = None) -> Model:
    """Make a model, to which versions are then registered."""
    return _connection().create_model(name, description, metadata)


@_connected
def get_model(identifier: str | int) -> Model:
    """By name or id; raises `NotFoundException`."""
    return _connection().get_model(identifier)


@_connected
def get_model_by_id(model_id: int) -> Model:
    """Old; `get_model` takes ids too."""
    return _connection().get_model_by_id(model_id)


@_connected
def get_models(
    sort_by: ModelSortBy = ModelSortBy.NAME,
    order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
    name: str | None = "",
    description: str | None = "",
) -> list[Model]:
    """All models that fit; `name` and `description` are parts of the texts."""
    return _connection().get_models(sort_by, order_by, name or None, description or None)


@_connected
def get_model_labels() -> list[str]:
    """All labels of models, the most used first."""
    return _connection().get_model_labels()


@_connected
def stream_trials_training_metrics(trial_ids: list[int]) -> Iterator[TrainingMetrics]:
    """Training metrics of some trials, ordered by trial, run and steps."""
    return _connection().stream_trials_training_metrics(trial_ids)


@_connected
def stream_trials_validation_metrics(trial_ids: list[int]) -> Iterator[ValidationMetrics]:
    """Validation metrics of some trials, ordered by trial, run and steps."""
    return _connection().stream_trials_validation_metrics(trial_ids)


@_connected
def create_user(username: str, admin: bool, password: str | None = None, remote: bool = False) -> User:
    """Make a user; for administrators."""
    return _connection().create_user(username, admin, password, remote)


@_connected
def get_user_by_id(user_id: int) -> User:
    """Raises `NotFoundException`."""
    return _connection().get_user_by_id(user_id)


@_connected
def get_user_by_name(user_name: str) -> User:
    """Raises `NotFoundException`."""
    return _connection().get_user_by_name(user_name)


@_connected
def whoami() -> User:
    """The user of the connection."""
    return _connection().whoami()


@_connected
def list_users() -> list[User]:
    """All users."""
    return _connection().list_users()


@_connected
def get_session_username() -> str:
    """The name of the user of the connection."""
    return _connection().get_session_username()


@_connected
def add_oauth_client(domain: str, name: str) -> NoReturn:
    """Raises `EnterpriseOnlyError`."""
    _connection().add_oauth_client(domain, name)


@_connected
def list_oauth_clients() -> NoReturn:
    """Raises `EnterpriseOnlyError`."""
    _connection().list_oauth_clients()


@_connected
def remove_oauth_client(client_id: str) -> NoReturn:
    """Raises `EnterpriseOnlyError`."""
    _connection().remove_oauth_client(client_id)

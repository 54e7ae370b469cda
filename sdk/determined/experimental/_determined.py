"""A connection to a cluster and its operations (client spec, section 2)."""

from __future__ import annotations

import getpass
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from determined import context, errors, yamlfile
from determined.common import api
from determined.common.api.errors import (
    MasterNotFoundException,
    UnauthenticatedException,
    UntrustedCertificate,
)
from determined.experimental import _checkpoint, _metrics, _model, _user
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._enums import ModelOrderBy, ModelSortBy, on_the_wire
from determined.experimental._experiment import ExperimentReference
from determined.experimental._model import Model
from determined.experimental._trial import TrialReference
from determined.experimental._user import User
from determined.transport import identity, submission
from determined.transport.address import master_url
from determined.transport.rest import Session
from determined.transport.token_store import TokenStore

logger = logging.getLogger("determined.client")


class _Users:
    """User management."""

    _speaking: Session

    def create_user(
        self, username: str, admin: bool, password: str | None = None, remote: bool = False
    ) -> User:
        """Create a user, as `client.create_user` does."""
        return _user.create(self._speaking, username, admin, password, remote)

    def get_user_by_id(self, user_id: int) -> User:
        """Return a user, as `client.get_user_by_id` does.

        Example:
            ```python
            print(client.Determined().get_user_by_id(3).username)
            ```
        """
        return _user.by_id(self._speaking, user_id)

    def get_user_by_name(self, user_name: str) -> User:
        """Return a user, as `client.get_user_by_name` does."""
        return _user.by_name(self._speaking, user_name)

    def whoami(self) -> User:
        """Return the user of this connection.

        Example:
            ```python
            print(client.Determined().whoami().username)
            ```
        """
        return _user.from_wire(self._speaking, self._speaking.get("/api/v1/me")["user"])

    def list_users(self) -> list[User]:
        """Return all users.

        Example:
            ```python
            admins = [user.username for user in client.Determined().list_users() if user.admin]
            ```
        """
        return [
            _user.from_wire(self._speaking, user) for user in self._speaking.get("/api/v1/users")["users"]
        ]

    def get_session_username(self) -> str:
        """Return the name of the user of this connection.

        Example:
            ```python
            print("acting as", client.Determined().get_session_username())
            ```
        """
        return identity.current_user(self._speaking)

    def logout(self) -> None:
        """Log out this connection's user. Its token is revoked and deleted.

        If the login has already ended, a warning is logged.

        Example:
            ```python
            cluster = client.Determined(user="ann", password="the password of ann")
            cluster.logout()
            ```
        """
        name = self.get_session_username()
        try:
            self._speaking.post("/api/v1/auth/logout")
        except UnauthenticatedException:
            logger.warning("logout() does nothing: the session of '%s' has ended already", name)
        self._speaking.token = None
        # Also if the session had ended: a token that is not accepted any more is of no use.
        TokenStore(self._speaking.master).drop(name, deactivate=True)


class _Models:
    """The model registry."""

    _speaking: Session

    def create_model(
        self,
        name: str,
        description: str | None = "",
        metadata: dict[str, Any] | None = None,
        labels: list[str] | None = None,
        workspace_name: str | None = None,
    ) -> Model:
        """Create a model in the registry, as `client.create_model` does.

        Args:
            labels: Keywords for finding the model.
            workspace_name: The workspace that the model belongs to.

        Returns:
            The model.
        """
        body = {"name": name, "description": description, "metadata": metadata, "labels": labels}
        return _model.create(self._speaking, {**body, "workspaceName": workspace_name})

    def get_model(self, identifier: str | int) -> Model:
        """Return a model from the registry, as `client.get_model` does."""
        return _model.get(self._speaking, identifier)

    def get_model_by_id(self, model_id: int) -> Model:
        """Return a model from the registry, as `client.get_model_by_id` does. Deprecated."""
        import warnings

        warnings.warn("get_model_by_id is old: use get_model(model_id)", FutureWarning, stacklevel=2)
        return _model.get(self._speaking, model_id)

    def get_models(
        self,
        sort_by: ModelSortBy = ModelSortBy.NAME,
        order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
        name: str | None = None,
        description: str | None = None,
        model_id: int | None = None,
        workspace_names: list[str] | None = None,
        workspace_ids: list[int] | None = None,
    ) -> list[Model]:
        """Return the matching models in the registry, as `client.get_models` does.

        Args:
            model_id: Id of the model.
            workspace_names: Only models in the workspaces of these names.
            workspace_ids: Only models in the workspaces of these ids.
        """
        params = {
            "sortBy": on_the_wire("sort_by", sort_by),
            "orderBy": on_the_wire("order_by", order_by),
            "name": name,
            "description": description,
            "id": model_id,
            "workspaceNames": workspace_names,
            "workspaceIds": workspace_ids,
        }
        return _model.find(self._speaking, params)

    def get_model_labels(self) -> list[str]:
        """Return all model labels, the most used first.

        Example:
            ```python
            print(client.Determined().get_model_labels())
            ```
        """
        return list(self._speaking.get("/api/v1/model/labels")["labels"])


class _OAuthClients:
    """OAuth clients, a feature of Determined's enterprise edition. Every call raises an error."""

    def add_oauth_client(self, domain: str, name: str) -> NoReturn:
        """Raise an error, as `client.add_oauth_client` does."""
        raise _enterprise_only()

    def list_oauth_clients(self) -> NoReturn:
        """Raise an error, as `client.list_oauth_clients` does."""
        raise _enterprise_only()

    def remove_oauth_client(self, client_id: str) -> NoReturn:
        """Raise an error, as `client.remove_oauth_client` does."""
        raise _enterprise_only()


def _enterprise_only() -> errors.EnterpriseOnlyError:
    return errors.EnterpriseOnlyError(
        "OAuth clients belonged to the enterprise edition: programs use API tokens (det token create)"
    )


class Determined(_Users, _Models, _OAuthClients):
    """A connection to a cluster as one user.

    Its methods match the functions of `determined.experimental.client`.

    Use it if a program needs several connections. Most scripts need only the functions.

    Example:
        ```python
        staging = client.Determined(master="staging:8080")
        production = client.Determined(master="production:8080", user="robot")
        ```
    """

    def __init__(
        self,
        master: str | None = None,
        user: str | None = None,
        password: str | None = None,
        cert_path: str | None = None,
        cert_name: str | None = None,
        noverify: bool = False,
    ) -> None:
        """Connect and log in.

        Args:
            master: Address as `HOST:PORT` or `http(s)://HOST:PORT`. Default: `DET_MASTER`, else
                `localhost:8080`.
            user: User name. Default: `DET_USER` with `DET_PASS`, else the user of the last `det user login`,
                else `determined`.
            password: The user's password. Not needed if a login of this user is stored. On a terminal you are
                prompted for it.
            cert_path: File with the certificates for verifying the master's certificate.
            cert_name: Host name that the master's certificate must have, if it differs from the address.
            noverify: True to skip certificate verification.

        Raises:
            ValueError: If the address is invalid.
            OSError: If `cert_path` cannot be read.
            MasterNotFoundException: If no master answers at the address.
            UnauthenticatedException: If the password is wrong.
        """
        if cert_path is not None:
            # At once, also for an address without TLS; otherwise the first request would fail, and say less.
            Path(cert_path).open("rb").close()
        verify = False if noverify else cert_path
        self._speaking = Session(master_url(master), verify=verify, cert_name=cert_name)
        # A program without a terminal could wait for an answer forever.
        ask = _ask if sys.stdin is not None and sys.stdin.isatty() else None
        try:
            identity.sign_in(self._speaking, user, password, ask=ask)
        except UntrustedCertificate:
            raise
        except MasterNotFoundException as error:
            if master is not None:
                raise
            # Nobody has chosen localhost:8080, which is what a script without DET_MASTER looks for.
            advice = "if yours is elsewhere, set DET_MASTER or pass client.Determined(master=...)"
            raise MasterNotFoundException(f"{error}; {advice}") from error

    @property
    def _session(self) -> api.Session:
        """The session in the form that scripts of 0.25 take from here, which has no other place for it."""
        return api.Session.around(self._speaking)

    def create_experiment(
        self,
        config: str | Path | dict[str, Any],
        model_dir: str | Path,
        includes: Sequence[str | Path] | None = None,
    ) -> ExperimentReference:
        """Create and activate an experiment, as `client.create_experiment` does."""
        text = _config_text(config)
        if not isinstance(model_dir, str | Path):
            raise ValueError(f"model_dir must be a str or a Path, not {type(model_dir).__name__}")
        files = context.pack(Path(model_dir), [Path(path) for path in includes or ()])
        body = {"config": text, "modelDefinition": files, "activate": True}
        answer = submission.submit(self._speaking, body)
        for warning in submission.warnings_of(answer):
            logger.warning(warning)
        return ExperimentReference(int(answer["experiment"]["id"]), self._speaking)

    def get_experiment(self, experiment_id: int) -> ExperimentReference:
        """Return an experiment, as `client.get_experiment` does."""
        return ExperimentReference(experiment_id, self._speaking)

    def get_trial(self, trial_id: int) -> TrialReference:
        """Return a trial, as `client.get_trial` does."""
        return TrialReference(trial_id, self._speaking)

    def get_checkpoint(self, uuid: str) -> Checkpoint:
        """Return a checkpoint, as `client.get_checkpoint` does."""
        return _checkpoint.get(self._speaking, uuid)

    def stream_trials_training_metrics(self, trial_ids: list[int]) -> Iterator[_metrics.TrainingMetrics]:
        """Return training metric reports, as `client.stream_trials_training_metrics` does."""
        return _metrics.stream_training(self._speaking, trial_ids)

    def stream_trials_validation_metrics(self, trial_ids: list[int]) -> Iterator[_metrics.ValidationMetrics]:
        """Return validation metric reports, as `client.stream_trials_validation_metrics` does."""
        return _metrics.stream_validation(self._speaking, trial_ids)


def _ask(user: str) -> str:
    return getpass.getpass(f"Password for user '{user}': ")


def _config_text(config: str | os.PathLike[str] | dict[str, Any]) -> str:
    if isinstance(config, dict):
        return yamlfile.dump(config)
    if not isinstance(config, str | Path):
        raise ValueError(f"config must be a path (str or Path) or a dict, not {type(config).__name__}")
    # Read here and not on the cluster, so that a mistake in it names the file and line of the user.
    text = yamlfile.read(Path(config))
    if not isinstance(yamlfile.parse(text, str(config)), dict):
        raise ValueError(f"{config}: a configuration must be a mapping of fields")
    return text

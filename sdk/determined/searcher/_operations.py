"""The operations a search method can request."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from determined import _arguments


class Operation:
    """Base class of all operations.

    Example:
        ```python
        def initial_operations(self, searcher_state):
            request_id = uuid.uuid4()
            return [
                searcher.Create(request_id, {"lr": 0.1}),
                searcher.ValidateAfter(request_id, length=100),
                searcher.Close(request_id),
            ]
        ```
    """

    def to_wire(self) -> dict[str, Any]:
        """Return the operation in the form of the REST API.

        Example:
            ```python
            [operation.to_wire() for operation in method.initial_operations(state)]
            ```
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Create(Operation):
    """Create a trial.

    Attributes:
        request_id: Id for the trial, generated with `uuid.uuid4()`.
        hparams: Hyperparameters by name.
        checkpoint: Has no effect, as in Determined 0.25. Trials start from `searcher.source_trial_id`
            or `searcher.source_checkpoint_uuid` of the configuration.

    Example:
        ```python
        searcher.Create(uuid.uuid4(), hparams={"lr": 0.1, "layers": 4})
        ```
    """

    request_id: uuid.UUID
    hparams: dict[str, Any]
    checkpoint: Any = None

    def __post_init__(self) -> None:
        _check_id(self.request_id)
        _arguments.mapping("hparams", self.hparams, "a dict of name to value")

    def to_wire(self) -> dict[str, Any]:
        """Return the operation in the form of the REST API.

        Example:
            ```python
            searcher.Create(uuid.uuid4(), {"lr": 0.1}).to_wire()    # as the REST API takes it
            ```
        """
        return {"createTrial": {"requestId": str(self.request_id), "hyperparams": json.dumps(self.hparams)}}


@dataclass(frozen=True)
class ValidateAfter(Operation):
    """Train a trial to a total length, then have it report the searcher metric.

    Attributes:
        request_id: Id of the trial.
        length: Total length from the start of the trial, in the unit that the script uses, usually batches.

    Example:
        ```python
        def on_validation_completed(self, searcher_state, request_id, metric, train_length):
            if train_length < 100:
                return [searcher.ValidateAfter(request_id, length=2 * train_length)]
            return [searcher.Close(request_id)]
        ```
    """

    request_id: uuid.UUID
    length: int

    def __post_init__(self) -> None:
        _check_id(self.request_id)
        _arguments.integer("length", self.length, at_least=1)

    def to_wire(self) -> dict[str, Any]:
        """Return the operation in the form of the REST API.

        Example:
            ```python
            searcher.ValidateAfter(request_id, length=100).to_wire()    # the length is text there: "100"
            ```
        """
        wanted = {"requestId": str(self.request_id), "length": str(self.length)}
        return {"trialOperation": {"validateAfter": wanted}}


@dataclass(frozen=True)
class Close(Operation):
    """End a trial once it has completed its requested work.

    Attributes:
        request_id: Id of the trial.

    Example:
        ```python
        def on_validation_completed(self, searcher_state, request_id, metric, train_length):
            return [searcher.Close(request_id)]
        ```
    """

    request_id: uuid.UUID

    def __post_init__(self) -> None:
        _check_id(self.request_id)

    def to_wire(self) -> dict[str, Any]:
        """Return the operation in the form of the REST API.

        Example:
            ```python
            searcher.Close(request_id).to_wire()    # {"closeTrial": {"requestId": "..."}}
            ```
        """
        return {"closeTrial": {"requestId": str(self.request_id)}}


@dataclass(frozen=True)
class Shutdown(Operation):
    """End the search and its experiment.

    Attributes:
        cancel: Whether the experiment counts as canceled.
        failure: Whether the experiment counts as failed.

    Example:
        ```python
        def on_trial_closed(self, searcher_state, request_id):
            if searcher_state.trials_closed == searcher_state.trials_created:
                return [searcher.Shutdown()]
            return []
        ```
    """

    cancel: bool = False
    failure: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Return the operation in the form of the REST API.

        Example:
            ```python
            searcher.Shutdown(failure=True).to_wire()    # {"shutDown": {"cancel": False, "failure": True}}
            ```
        """
        return {"shutDown": {"cancel": self.cancel, "failure": self.failure}}


@dataclass(frozen=True)
class Progress(Operation):
    """Set the displayed progress of the search.

    Attributes:
        progress: Progress from 0 to 1.

    Example:
        ```python
        def on_validation_completed(self, searcher_state, request_id, metric, train_length):
            self.validations += 1
            return [searcher.Progress(self.validations / 100), searcher.Close(request_id)]
        ```
    """

    progress: float

    def __post_init__(self) -> None:
        _arguments.number("progress", self.progress)

    def to_wire(self) -> dict[str, Any]:
        """Return the operation in the form of the REST API.

        Example:
            ```python
            searcher.Progress(0.25).to_wire()    # {"setSearcherProgress": {"progress": 0.25}}
            ```
        """
        return {"setSearcherProgress": {"progress": self.progress}}


def _check_id(value: Any) -> None:
    """Raise TypeError or ValueError for anything but the id of a trial, which may be given as text."""
    if not isinstance(value, str | uuid.UUID):
        raise TypeError(_arguments.wrong("request_id", "a uuid.UUID, such as uuid.uuid4()", value))
    try:
        uuid.UUID(str(value))
    except ValueError:
        raise ValueError(_arguments.wrong("request_id", "a uuid.UUID, such as uuid.uuid4()", value)) from None

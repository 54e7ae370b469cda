"""What a search method asks for."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any


class Operation:
    """Base of all operations."""

    def to_wire(self) -> dict[str, Any]:
        """Return the operation as the REST API takes it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Create(Operation):
    """Create a trial.

    Attributes:
        request_id: Id to know the trial by; make it with `uuid.uuid4()`.
        hparams: Hyperparameters by name.
        checkpoint: Has no effect, as in Determined 0.25: trials begin from `searcher.source_trial_id`
            or `searcher.source_checkpoint_uuid` of the configuration.
    """

    request_id: uuid.UUID
    hparams: dict[str, Any]
    checkpoint: Any = None

    def to_wire(self) -> dict[str, Any]:
        """Return the operation as the REST API takes it."""
        return {"createTrial": {"requestId": str(self.request_id), "hyperparams": json.dumps(self.hparams)}}


@dataclass(frozen=True)
class ValidateAfter(Operation):
    """Train a trial until it has trained a length in all, then have it report the searcher metric.

    Attributes:
        request_id: Id of the trial.
        length: Length counted from the beginning of the trial, in the unit that the script counts in, usually
            batches.
    """

    request_id: uuid.UUID
    length: int

    def to_wire(self) -> dict[str, Any]:
        """Return the operation as the REST API takes it."""
        wanted = {"requestId": str(self.request_id), "length": str(self.length)}
        return {"trialOperation": {"validateAfter": wanted}}


@dataclass(frozen=True)
class Close(Operation):
    """End a trial once it has done what it was asked for.

    Attributes:
        request_id: Id of the trial.
    """

    request_id: uuid.UUID

    def to_wire(self) -> dict[str, Any]:
        """Return the operation as the REST API takes it."""
        return {"closeTrial": {"requestId": str(self.request_id)}}


@dataclass(frozen=True)
class Shutdown(Operation):
    """End the search, and with it the experiment.

    Attributes:
        cancel: Whether the experiment counts as canceled.
        failure: Whether the experiment counts as failed.
    """

    cancel: bool = False
    failure: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Return the operation as the REST API takes it."""
        return {"shutDown": {"cancel": self.cancel, "failure": self.failure}}


@dataclass(frozen=True)
class Progress(Operation):
    """Show how far the search is.

    Attributes:
        progress: From 0 to 1.
    """

    progress: float

    def to_wire(self) -> dict[str, Any]:
        """Return the operation as the REST API takes it."""
        return {"setSearcherProgress": {"progress": self.progress}}

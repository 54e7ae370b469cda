"""What a search method asks for."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any


class Operation:
    """Base of all operations."""

    def to_wire(self) -> dict[str, Any]:
        """As it is posted."""
        raise NotImplementedError


@dataclass(frozen=True)
class Create(Operation):
    """Make a trial with these hyperparameters.

    `checkpoint` is taken and has no effect, as in Determined 0.25: trials begin with the experiment's source.
    """

    request_id: uuid.UUID
    hparams: dict[str, Any]
    checkpoint: Any = None

    def to_wire(self) -> dict[str, Any]:
        return {"createTrial": {"requestId": str(self.request_id), "hyperparams": json.dumps(self.hparams)}}


@dataclass(frozen=True)
class ValidateAfter(Operation):
    """Train until `length` in all, then report the searcher metric."""

    request_id: uuid.UUID
    length: int

    def to_wire(self) -> dict[str, Any]:
        wanted = {"requestId": str(self.request_id), "length": str(self.length)}
        return {"trialOperation": {"validateAfter": wanted}}


@dataclass(frozen=True)
class Close(Operation):
    """No further work for that trial."""

    request_id: uuid.UUID

    def to_wire(self) -> dict[str, Any]:
        return {"closeTrial": {"requestId": str(self.request_id)}}


@dataclass(frozen=True)
class Shutdown(Operation):
    """The search is over."""

    cancel: bool = False
    failure: bool = False

    def to_wire(self) -> dict[str, Any]:
        return {"shutDown": {"cancel": self.cancel, "failure": self.failure}}


@dataclass(frozen=True)
class Progress(Operation):
    """How far the search is, 0 to 1."""

    progress: float

    def to_wire(self) -> dict[str, Any]:
        return {"setSearcherProgress": {"progress": self.progress}}

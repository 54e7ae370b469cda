"""Operations that a user-defined search method requests (searchers spec, section 8)."""

from __future__ import annotations

from typing import Any

import msgspec


class CreateTrial(msgspec.Struct, frozen=True, tag="create_trial"):
    """Create a trial; the client assigns its id."""

    request_id: str
    hparams: dict[str, Any]


class TrainTo(msgspec.Struct, frozen=True, tag="train_to"):
    """Train to a total of `length`, then report the searcher metric."""

    request_id: str
    length: int


class CloseTrial(msgspec.Struct, frozen=True, tag="close_trial"):
    """End a trial: it gets no more work."""

    request_id: str


class ShutDown(msgspec.Struct, frozen=True, tag="shut_down"):
    """End the search, which does not end by itself."""

    cancel: bool = False
    failure: bool = False


class SetProgress(msgspec.Struct, frozen=True, tag="set_progress"):
    """Set the progress of the search, from 0 to 1."""

    progress: float


CustomOperation = CreateTrial | TrainTo | CloseTrial | ShutDown | SetProgress

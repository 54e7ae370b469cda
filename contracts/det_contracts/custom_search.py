"""What a user's own search method is told and asks for (searchers spec, section 8)."""

from __future__ import annotations

from typing import Any

import msgspec


class CreateTrial(msgspec.Struct, frozen=True, tag="create_trial"):
    """Make a trial; the client names it."""

    request_id: str
    hparams: dict[str, Any]


class TrainTo(msgspec.Struct, frozen=True, tag="train_to"):
    """Train until `length` in all, then report the searcher metric."""

    request_id: str
    length: int


class CloseTrial(msgspec.Struct, frozen=True, tag="close_trial"):
    """No further work for that trial."""

    request_id: str


class ShutDown(msgspec.Struct, frozen=True, tag="shut_down"):
    """The search is over; it does not end by itself."""

    cancel: bool = False
    failure: bool = False


class SetProgress(msgspec.Struct, frozen=True, tag="set_progress"):
    """How far the search is, 0 to 1."""

    progress: float


CustomOperation = CreateTrial | TrainTo | CloseTrial | ShutDown | SetProgress

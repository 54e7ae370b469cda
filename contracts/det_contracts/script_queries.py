"""Requests from a trial's script to the owners of facts, and the replies.

A script asks for news and waits (long polling). A reply contains the complete current state, so anything
missed is in the next one. Each owner is asked in the trial's own name: `ask.trial.<id>.<owner>.<question>`.
"""

from __future__ import annotations

import msgspec

WAIT_S = 20.0
"""A request without news is answered after at most this time, without a value."""


class Operations(msgspec.Struct, frozen=True):
    """From the searcher: the operations of a trial."""

    seq: int = 0
    """Number of its latest operation; 0 before the first."""
    length: int = 0
    idled: int = 0
    """The last operation that was answered with "nothing for now"."""
    over: bool = False
    """Another run of the trial has started: nothing that this run reports counts any more."""


class Leave(msgspec.Struct, frozen=True):
    """From the scheduler: whether a run is asked to save and exit."""

    leave: bool = False


class Refusals(msgspec.Struct, frozen=True):
    """From metrics: the latest reports of a run that were not accepted."""

    newest: int = 0
    """Number of the latest refusal."""
    reasons: tuple[str, ...] = ()
    """Reasons of the refusals after the one last seen."""


class AskOperations(msgspec.Struct, frozen=True, tag="news"):
    """To the searcher: reply as soon as there is news since `seen`."""

    run: int
    seen: Operations | None = None
    """None for an immediate reply with the current state."""
    wait_s: float = WAIT_S


class AskLeave(msgspec.Struct, frozen=True, tag="news"):
    """To the scheduler: reply as soon as there is news since `seen`."""

    allocation_id: str
    seen: Leave | None = None
    wait_s: float = WAIT_S


class AskRefusals(msgspec.Struct, frozen=True, tag="news"):
    """To metrics: reply as soon as there is news since `seen`."""

    run: int
    seen: Refusals | None = None
    wait_s: float = WAIT_S


class AskBest(msgspec.Struct, frozen=True, tag="best_validation"):
    """To the searcher: the best searcher metric of the trial's experiment, or null."""

    smaller_is_better: bool


class AskMetadata(msgspec.Struct, frozen=True, tag="checkpoint_metadata"):
    """To the searcher: the registry's metadata of a checkpoint of the trial's experiment, or null.

    Also for the checkpoint that the trial starts from, whichever experiment it belongs to.
    """

    uuid: str


class AskStorage(msgspec.Struct, frozen=True, tag="storage"):
    """To checkpoints: why no checkpoint of this size may be stored now, as text; null if it may be stored.

    Size 0 means that the size is not known yet, and asks whether a quota is exhausted.
    """

    size_bytes: int


class Holder(msgspec.Struct, frozen=True):
    """From the scheduler: the worker that has an id, or had it last."""

    here: bool
    instance: str
    host: str
    address: str


class AskHolder(msgspec.Struct, frozen=True, tag="holder"):
    """To the scheduler, from a worker: who holds its id; null if nobody has yet."""

"""What the script of a trial asks the owners of facts, and what they answer.

A script asks what is new, and waits. An answer holds the whole present state, so what was missed is in the
next one. Each owner is asked in the script's own name: `ask.trial.<id>.<owner>.<question>`.
"""

from __future__ import annotations

import msgspec

WAIT_S = 20.0
"""A request that nothing comes of is answered after so long at the most, with no value."""
LONGEST_LIST = 1000
"""Of the identifiers in one question."""


class Operations(msgspec.Struct, frozen=True):
    """From the searcher: what a trial is to do."""

    seq: int = 0
    """Number of its newest operation; 0 before there is one."""
    length: int = 0
    idled: int = 0
    """The last operation that was answered with "nothing for now"."""
    over: bool = False
    """Another run of the trial has begun: nothing of what this one says counts any more."""


class Leave(msgspec.Struct, frozen=True):
    """From the scheduler: whether a run is asked to save and leave."""

    leave: bool = False


class Refusals(msgspec.Struct, frozen=True):
    """From metrics: reports of a run that were not accepted, the newest few."""

    newest: int = 0
    """Number of the last one."""
    reasons: tuple[str, ...] = ()
    """Of those behind the one that was seen."""


class AskOperations(msgspec.Struct, frozen=True, tag="news"):
    """To the searcher: anything that was not seen, as soon as there is."""

    run: int
    seen: Operations | None = None
    """None to be answered at once, whatever there is."""
    wait_s: float = WAIT_S


class AskLeave(msgspec.Struct, frozen=True, tag="news"):
    """To the scheduler: likewise."""

    allocation_id: str
    seen: Leave | None = None
    wait_s: float = WAIT_S


class AskRefusals(msgspec.Struct, frozen=True, tag="news"):
    """To metrics: likewise."""

    run: int
    seen: Refusals | None = None
    wait_s: float = WAIT_S


class AskBest(msgspec.Struct, frozen=True, tag="best_validation"):
    """To the searcher: the best searcher metric of the trial's experiment, or null."""

    smaller_is_better: bool


class AskMetadata(msgspec.Struct, frozen=True, tag="checkpoint_metadata"):
    """To the searcher: what the registry holds as metadata of a checkpoint of the trial's experiment, or
    null.

    Also of one that it starts from, whosever that is.
    """

    uuid: str


class AskStorage(msgspec.Struct, frozen=True, tag="storage"):
    """To checkpoints: why no checkpoint of so many bytes may be stored now, in words; null where one may.

    With 0, where the size is not known yet: whether a quota is used up.
    """

    size_bytes: int


class Holder(msgspec.Struct, frozen=True):
    """From the scheduler: the worker that has an id, or had it last."""

    here: bool
    instance: str
    host: str
    address: str


class AskHolder(msgspec.Struct, frozen=True, tag="holder"):
    """To the scheduler, of a worker: who has its id; null for nobody so far."""

"""Records of pools that get workers by themselves: the workers they asked for, and how that goes."""

from __future__ import annotations

from typing import Literal

import msgspec

from det_contracts.events.scheduler import Phase

Standing = Literal["over", "released", "failing", "taken", "idle", "spare"]
"""Nothing is left of it; it is given back; it must be given back; it has work, or may have none; it could
take work, or will once it is there, and has long had none; or not for long."""
SPARE: tuple[Standing, ...] = ("idle", "spare")


class Provisioned(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that a pool asked for, until nothing is left of it.

    Times that it waits for are seconds since the epoch, 0 for none.
    """

    id: str
    pool: str
    number: int
    wanted_at: float
    phase: Phase = "wanted"
    """As its engine said last; the worker's own word is `here`."""
    detail: str = ""
    ends_at: float = 0.0
    """When its engine will take its host away."""
    here: bool = False
    """It is registered and in touch."""
    was_here: bool = False
    busy: bool = False
    """Something holds a share of it."""
    closed: bool = False
    """It is here, and a person lets no work come to it."""
    released: str = ""
    """Why it is given back; empty while it is not."""
    start_by: float = 0.0
    """Until then it must have registered."""
    idle_by: float = 0.0
    """Then it counts as idle."""
    gone_by: float = 0.0
    """Then it is believed that its engine does not have it."""
    notice_by: float = 0.0
    """Then its tasks are asked to leave, as its host's time ends."""
    late: bool = False
    """It did not register in time."""
    idle: bool = False
    """It has had nothing to do for long, or was not there to do anything."""
    gone: bool = False
    """Its engine does not have it."""
    ending: bool = False
    """The time of its host ends soon."""

    @property
    def standing(self) -> Standing:
        """What it is for its pool. The worker itself is believed more than its engine."""
        if self.gone and not self.here:
            return "over"
        if self.released:
            return "released"
        if self.ending or self.late:
            return "failing"
        if self.busy or self.closed:
            return "taken"
        return "idle" if self.idle else "spare"

    @property
    def due_at(self) -> float:
        """The earliest time that it waits for; 0 for none."""
        return min((t for t in (self.start_by, self.idle_by, self.gone_by, self.notice_by) if t), default=0.0)


class Supply(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool's requests for workers go."""

    pool: str
    newest: int = 0
    """Number of the worker that was asked for last."""
    failures: int = 0
    """Workers in a row that came to nothing."""
    failure: str = ""
    """What the last of them came to."""
    retry_at: float = 0.0
    """Until then nothing is asked for; 0: no reason to wait."""
    problem: str = ""
    """Why its engine cannot be asked; empty: it can."""

"""Records of pools that provision workers: the requested workers and the progress of the requests."""

from __future__ import annotations

from typing import Literal

import msgspec

from det_contracts.events.scheduler import Phase

Standing = Literal["over", "released", "failing", "taken", "idle", "spare"]
"""The standing of a requested worker in its pool.

In order: nothing is left of it; it is being given back; it must be given back; it has work or may receive
none; it could take work (or will when it is up) and has been idle for long; the same, but not for long.
"""
SPARE: tuple[Standing, ...] = ("idle", "spare")


class Provisioned(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that a pool requested, kept until nothing is left of it.

    Times are seconds since the epoch; 0 means none.
    """

    id: str
    pool: str
    number: int
    wanted_at: float
    phase: Phase = "wanted"
    """As the engine last reported it. Whether the worker itself is registered is in `here`."""
    detail: str = ""
    ends_at: float = 0.0
    """When the engine will take its host away."""
    here: bool = False
    """Whether it is registered and in contact."""
    was_here: bool = False
    busy: bool = False
    """Whether anything holds a part of it."""
    closed: bool = False
    """Whether it is registered but a person has disabled it."""
    released: str = ""
    """Why it is being given back; "" if it is not."""
    start_by: float = 0.0
    """The time by which it must have registered."""
    idle_by: float = 0.0
    """When it starts to count as idle."""
    gone_by: float = 0.0
    """When it is presumed that the engine no longer has it."""
    notice_by: float = 0.0
    """When its tasks are asked to exit because its host's time ends."""
    late: bool = False
    """It did not register in time."""
    idle: bool = False
    """It has had nothing to do for long, or was not there to do anything."""
    gone: bool = False
    """The engine no longer has it."""
    ending: bool = False
    """Its host's time ends soon."""
    forgiven: int = 0
    """Failures of the pool that its registration made up for. They count again if it is too short."""
    too_short: bool = False
    """When its host was first seen running, its time was within the notice already: no task can use it."""

    @property
    def standing(self) -> Standing:
        """Its standing in the pool. The worker itself is trusted more than its engine."""
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
    """The progress of a pool's requests for workers."""

    pool: str
    newest: int = 0
    """Number of the most recently requested worker."""
    failures: int = 0
    """Number of consecutive workers that failed to start."""
    failure: str = ""
    """Why the last of them failed."""
    retry_at: float = 0.0
    """No worker is requested before this time; 0: no back-off."""
    problem: str = ""
    """Why its engine cannot be reached; "" if it can."""

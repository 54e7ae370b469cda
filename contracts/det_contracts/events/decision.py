"""The record that leads every batch of decisions."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("decision", key="owner")
class Decision(msgspec.Struct, frozen=True):
    """Sent by the leader of a service, first in each atomic batch, on the one fenced subject.

    The owner's replicas listen: a replica that has not seen the newest one may not decide. Those of the
    intake may stand alone; all services listen to them, to know which part of WITNESS has reached the log.
    """

    owner: str
    seen: int
    """Position of CONTROL that the decider had folded. For the intake: `to` covers the facts up to there."""
    count: int
    """Number of events that follow in the same batch."""
    replica: str
    to: int = 0
    """For the intake: position in WITNESS up to which everything has been admitted or refused."""

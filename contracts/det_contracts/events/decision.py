"""The record that leads every batch of decisions."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("decision", key="owner")
class Decision(msgspec.Struct, frozen=True):
    """Sent by the deciding replica of a service, first in each atomic batch, on the one fenced subject.

    Listened to by the owner's replicas: who has not seen the newest one may not decide. Those of the intake
    may stand alone; all services listen to them, to know what of WITNESS has reached the log.
    """

    owner: str
    seen: int
    """Position of CONTROL that the decider had folded. Of the intake: `to` covers the facts up to there."""
    count: int
    """Events that follow in the same batch."""
    replica: str
    to: int = 0
    """Of the intake: position in WITNESS up to which everything is admitted or refused."""

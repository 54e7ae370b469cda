"""The record that leads every batch of decisions."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("decision", key="owner")
class Decision(msgspec.Struct, frozen=True):
    """Sent by the deciding replica of a service, first in each atomic batch, on the one fenced subject.

    Listened to by the owner's replicas: who has not seen the newest one may not decide.
    """

    owner: str
    seen: int
    """Position of CONTROL that the decider had folded."""
    count: int
    """Events that follow in the same batch."""
    replica: str

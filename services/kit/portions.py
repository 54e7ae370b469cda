"""Splits what a feed delivers into portions, each folded without a pause."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from det_contracts.envelope import Recorded
from services.kit.log import Stored

# As much as one request of a feed brings (`jetstream_feed.REQUEST_BYTES`), so usually a delivery is
# one portion.
PORTION_BYTES = 4 * 1024 * 1024
_BODY = attrgetter("body")


class Portion(NamedTuple):
    """Messages that are folded without a pause, and what was read of them."""

    messages: Sequence[Stored]
    decoded: list[Stored]
    """Those that were not passed over, and the event of each."""
    events: list[Recorded]
    passed_over: int
    """The newest position in WITNESS of a fact that was passed over; 0 if there is none."""


def size_of(messages: Sequence[Stored]) -> int:
    """Size of messages in bytes, without their headers."""
    # Without a generator, because each message is measured several times.
    return sum(map(len, map(_BODY, messages)))


def portions_of(messages: Sequence[Stored], stop_before: int, at_most: int = 0) -> list[Sequence[Stored]]:
    """Split messages into portions, each folded without a pause and decoded at once. Returns at least one.

    The message at position `stop_before` begins a portion. `at_most` limits the messages of one, if not 0.
    """
    if not stop_before and not at_most and size_of(messages) <= PORTION_BYTES:
        return [messages]
    portions, start, size = list[Sequence[Stored]](), 0, 0
    for at, message in enumerate(messages):
        is_full = size + len(message.body) > PORTION_BYTES or at - start == at_most
        if at > start and (message.position == stop_before or is_full):
            portions.append(messages[start:at])
            start, size = at, 0
        size += len(message.body)
    return [*portions, messages[start:]]

"""Splits what a feed delivers into portions, each folded without a pause."""

from __future__ import annotations

from collections.abc import Sequence

from services.kit.log import Stored

PORTION_BYTES = 4 * 1024 * 1024


def portions_of(messages: Sequence[Stored], stop_before: int) -> list[Sequence[Stored]]:
    """Split messages into portions, each folded without a pause and decoded at once. Returns at least one.

    The message at position `stop_before` begins a portion.
    """
    if not stop_before and sum(len(message.body) for message in messages) <= PORTION_BYTES:
        return [messages]
    found, start, size = list[Sequence[Stored]](), 0, 0
    for at, message in enumerate(messages):
        if at > start and (message.position == stop_before or size + len(message.body) > PORTION_BYTES):
            found.append(messages[start:at])
            start, size = at, 0
        size += len(message.body)
    return [*found, messages[start:]]

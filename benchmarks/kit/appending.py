"""Appends of benchmarks on disks of any speed."""

from __future__ import annotations

from collections.abc import Sequence

from services.kit.log import Draft, Fence, FenceLost, Log, NotStored, OutcomeUnknown


async def append_until_stored(log: Log, drafts: Sequence[Draft], fence: Fence) -> int:
    """Append a batch that begins on the fence's subject; returns the position of its last message.

    A service that gets no answer within seconds starts over from the log. A benchmark writes alone, so it
    asks the log whether its batch is there, and sends it again if not.
    """
    is_unanswered = False
    while True:
        try:
            return await log.append_batch(drafts, fence=fence)
        except OutcomeUnknown:
            is_unanswered = True
        except (FenceLost, NotStored):
            # The first attempt may have been stored after all, which is then found below.
            if not is_unanswered:
                raise
            is_unanswered = False
        newest = await log.last(fence.subject)
        if newest is not None and newest.position > fence.last:
            return newest.position + len(drafts) - 1

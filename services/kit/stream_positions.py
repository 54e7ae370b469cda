"""How far each stream is folded, for those who wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from det_contracts import subjects
from det_contracts.problems import invalid, unavailable
from services.kit.awaitable_position import AwaitablePosition

if TYPE_CHECKING:
    from services.kit.standstill import Standstill


class StreamPositions:
    """The positions of one service in the streams that it folds, and in WITNESS."""

    def __init__(
        self, owner: str, streams: Iterable[str], admitted: AwaitablePosition, standstill: Standstill
    ) -> None:
        """`admitted` is the position in WITNESS up to which every statement is refused, or folded."""
        self._owner = owner
        self._standstill = standstill
        self._positions = {stream: AwaitablePosition() for stream in streams} | {subjects.WITNESS: admitted}

    def begin(self, positions: Mapping[str, int]) -> None:
        """Start at the positions of a newly loaded state."""
        for stream, position in positions.items():
            self._positions[stream].begin(position)

    def advance(self, stream: str, position: int) -> None:
        """Wake those who wait for positions up to this one."""
        self._positions[stream].advance(position)

    async def wait_for_position(self, position: int, within_s: float, stream: str) -> None:
        """Wait until a stream is folded up to a position.

        Raises `Refused`: after `within_s` seconds, if the service does not read the stream, or at once if it
        stands still before that position.
        """
        folded_position = self._positions.get(stream)
        if folded_position is None:
            raise invalid(f"{self._owner} does not read {stream}")
        failed = self._standstill.failed
        if failed is not None and position > folded_position.position:
            raise failed.refusal(self._owner)
        try:
            async with asyncio.timeout(within_s):
                await folded_position.wait_for_position(position)
        except TimeoutError:
            raise unavailable(
                f"{self._owner} is at position {folded_position.position} of {stream}, "
                f"not yet at {position}; try again"
            ) from None

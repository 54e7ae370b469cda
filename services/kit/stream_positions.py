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
        self._folded: Mapping[str, int] = {}
        self._reached: dict[str, int] = {}

    def begin(self, positions: Mapping[str, int]) -> None:
        """Start at the positions of a newly loaded state, which their owner updates as it folds."""
        for stream, position in self._folded.items():
            self._reached[stream] = max(position, self._reached.get(stream, 0))
        self._folded = positions
        for stream, position in positions.items():
            self._positions[stream].begin(position)
        # Facts that were admitted and folded before are folded again, or are in what was loaded.
        self._positions[subjects.WITNESS].begin(0)

    @property
    def is_behind(self) -> bool:
        """Whether the state was loaded anew and lacks what was folded here before.

        Whoever looks at it then sees the past: what has begun may not be in it, and look like what is over.
        """
        return any(self._folded.get(stream, 0) < position for stream, position in self._reached.items())

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

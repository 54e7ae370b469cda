"""Drops messages of a sender that sends too many, before anything else is done about them.

Scripts and workers ask services directly, and the broker passes on whatever they send, however fast. Making a
message and a task of each costs so much that one sender could keep a service from reading the log and from
answering the broker. Here, a dropped message costs about a microsecond: its frame is skipped unread.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable

import structlog
from nats.aio.client import Client
from nats.protocol.parser import Parser

log = structlog.get_logger()
WINDOW_S = 10.0
# Far above what they need: a script waits for most answers up to 20 s, and a worker sends a heartbeat every
# two.
MAX_COST = 1000
"""What one sender may cost in a window: a message costs 1, and 1 more for each `COST_BYTES`."""
COST_BYTES = 4096
FRAME = re.compile(rb"H?MSG[ \t]+([^ \t\r\n]+)[ \t][^\r\n]*?(\d+)[ \t]*\r\n")
SENDER_TOKENS = 4
"""The sender is named by the first tokens of a subject: `ask.trial.12.searcher`, `heartbeat.w1`,
`health.sign.worker.w1`."""
LINE_END = b"\r\n"


class FloodFilter:
    """Takes the bytes that the broker sends, and returns them without the frames of senders beyond the limit.

    Example:
        ```python
        filter = FloodFilter(max_cost=1)
        filter.keep(b"MSG ask.trial.1.a.b 1 2\\r\\n{}\\r\\n" * 9)  # the first of the nine
        ```
    """

    def __init__(
        self,
        max_cost: int = MAX_COST,
        window_s: float = WINDOW_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_cost, self._window_s, self._clock = max_cost, window_s, clock
        self._costs: Counter[bytes] = Counter()
        self._dropped: Counter[bytes] = Counter()
        self._window_ends = clock() + window_s
        self.reset()

    def reset(self) -> None:
        """Forget half a frame: another connection begins."""
        self._head = b""
        """The beginning of a line whose end has not arrived."""
        self._rest = 0
        """Bytes of the current frame that have not arrived."""
        self._keeps = True
        """Whether the current frame is kept."""

    def keep(self, data: bytes) -> bytes:
        """Return what is kept of the next bytes."""
        self._begin_window()
        data, at, pieces = self._head + data, 0, []
        self._head = b""
        while at < len(data):
            if not self._rest and not self._begin_frame(data, at):
                self._head = data[at:]
                break
            end = min(at + self._rest, len(data))
            if self._keeps:
                pieces.append(data[at:end])
            self._rest -= end - at
            at = end
        return b"".join(pieces)

    def _begin_frame(self, data: bytes, at: int) -> bool:
        """Find the length of the frame at a position, and decide about it. False: its line is not whole."""
        frame = FRAME.match(data, at)
        if frame is None:
            # PING, INFO, +OK and the like: the connection itself, which must never be dropped.
            end = data.find(LINE_END, at)
            if end >= 0:
                self._rest, self._keeps = end + len(LINE_END) - at, True
            return end >= 0
        size = int(frame[2])
        self._rest = frame.end() - at + size + len(LINE_END)
        self._keeps = self._spend(b".".join(frame[1].split(b".", SENDER_TOKENS)[:SENDER_TOKENS]), size)
        return True

    def _spend(self, sender: bytes, size: int) -> bool:
        cost = 1 + size // COST_BYTES
        if self._costs[sender] + cost > self._max_cost:
            self._dropped[sender] += 1
            return False
        self._costs[sender] += cost
        return True

    def _begin_window(self) -> None:
        now = self._clock()
        if now < self._window_ends:
            return
        for sender, number in self._dropped.most_common(3):
            name = sender.decode(errors="replace")
            log.warning("flood.dropped", sender=name, messages=number, within_s=self._window_s)
        # Emptied with each window, so that subjects which are invented without end cannot fill the memory.
        self._costs.clear()
        self._dropped.clear()
        self._window_ends = now + self._window_s


class FilteringParser(Parser):
    """The library's parser behind a filter."""

    def __init__(self, client: Client, filter: FloodFilter) -> None:
        self._filter = filter
        super().__init__(client)

    def reset(self) -> None:
        """Begin anew with another connection."""
        self._filter.reset()
        super().reset()

    async def parse(self, data: bytes = b"") -> None:
        """Parse what the filter keeps."""
        if remaining := self._filter.keep(data):
            await super().parse(remaining)

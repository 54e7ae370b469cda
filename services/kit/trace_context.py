"""What a trace leaves beside the messages: the header that it travels in, and which span came with what.

The header `traceparent` (W3C Trace Context) stands beside a message, never in it: what is folded cannot
depend on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar

from det_contracts.envelope import Recorded
from services.kit.log import Stored

HEADER = "traceparent"
CURRENT: ContextVar[str] = ContextVar(HEADER, default="")
"""The span that the running task works in, as the header writes it; empty outside of traces."""
REMEMBERED = 20_000


class Trail:
    """Which span events and commands came in, by their ids; what is oldest is forgotten.

    What a decider answers first about a run belongs to the span that asked for that run: of several that it
    read together, the cause of its decision names only the last. What follows belongs to that of its cause.
    """

    def __init__(self) -> None:
        self._spans: OrderedDict[str, str] = OrderedDict()

    def put(self, id: str, span: str) -> None:
        """An event or command came in a span."""
        if span:
            self._spans.setdefault(id, span)
            if len(self._spans) > REMEMBERED:
                self._spans.popitem(last=False)

    def note(self, messages: Sequence[Stored], events: Sequence[Recorded]) -> None:
        """Events were read."""
        for message, recorded in zip(messages, events, strict=True):
            if message.trace:
                self.put(recorded.id, message.trace)
                if hasattr(recorded.event, "allocation_id"):
                    self.put(_run_of(recorded.event), message.trace)

    def behind(self, event: object, cause: str) -> str:
        """The span that led to an event; empty for none."""
        run = _run_of(event)
        if first := self._spans.get(run):
            self._spans[run] = ""
            return first
        return self._spans.get(cause, "")


def _run_of(event: object) -> str:
    return f"run {getattr(event, 'allocation_id', '')}"

"""Tracing beside the messages: the header that carries a trace, and the span of each recent message.

The header `traceparent` (W3C Trace Context) is sent beside a message, never in it, so the fold cannot depend
on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from det_contracts.envelope import Recorded
from services.kit.bounded_dict import BoundedDict
from services.kit.log import Stored

HEADER = "traceparent"
CURRENT: ContextVar[str] = ContextVar(HEADER, default="")
"""The span of the running task, in header format; empty outside of traces."""
MAX_SPANS = 20_000


class EventSpans:
    """The spans of recent events and commands, by id. The oldest are forgotten.

    The first decision about a run belongs to the span that requested the run, because the cause of a decision
    names only the last of several events read together. Later decisions belong to the span of their cause.
    """

    def __init__(self) -> None:
        self._spans: BoundedDict[str, str] = BoundedDict(MAX_SPANS)

    def record_span(self, id: str, span: str) -> None:
        """Record the span of an event or command."""
        if span and id not in self._spans:
            self._spans[id] = span

    def span_of(self, id: str) -> str:
        """Return the span of a recent event or command; empty if there is none."""
        return self._spans.get(id, "")

    def record_events(self, messages: Sequence[Stored], events: Sequence[Recorded]) -> None:
        """Record the spans of events that were read."""
        for message, recorded in zip(messages, events, strict=True):
            if message.trace:
                self.record_span(recorded.id, message.trace)
                if hasattr(recorded.event, "allocation_id"):
                    self.record_span(_run_of(recorded.event), message.trace)

    def cause_of(self, event: object, cause: str) -> str:
        """Return the span that led to an event; empty if there is none."""
        run = _run_of(event)
        if first := self._spans.get(run):
            # Kept and emptied: a removed entry would be recorded again by the run's next event.
            self._spans[run] = ""
            return first
        return self._spans.get(cause, "")


def _run_of(event: object) -> str:
    return f"run {getattr(event, 'allocation_id', '')}"

"""Traces by OpenTelemetry, from a person's request to the first line that a script writes.

They are off, and free, unless the standard OTEL_* variables name an exporter. A trace travels beside the
messages, in the header `traceparent` (W3C Trace Context), never in them: what is folded cannot depend on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from det_contracts.envelope import Recorded
from services.kit.log import Stored
from services.kit.settings import BadSettings

if TYPE_CHECKING:
    from services.kit.spans import Tracer

HEADER = "traceparent"
CURRENT: ContextVar[str] = ContextVar(HEADER, default="")
"""The span that the running task works in, as the header writes it; empty outside of traces."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
REMEMBERED = 20_000


def configure(program: str, environment: Mapping[str, str]) -> Tracer | None:
    """The tracer that OTEL_* variables ask for; None when they do not. Raises `BadSettings`."""
    named = environment.get("OTEL_TRACES_EXPORTER", "")
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or named == "none"
    if disabled or not (named or any(environment.get(name) for name in ENDPOINTS)):
        return None
    if named not in ("", "otlp"):
        raise BadSettings(f"OTEL_TRACES_EXPORTER='{named}': there is 'otlp', over HTTP, and 'none'")
    try:
        from services.kit.spans import Tracer
    except ImportError as error:
        message = f"OTEL_* variables name an exporter, but {error.name} is not installed"
        raise BadSettings(f"{message}: pip install 'steadfast[traces]'") from error
    return Tracer(program)


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

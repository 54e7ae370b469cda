"""OpenTelemetry spans. Imported only if spans are exported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span as OpenSpan
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from services.kit.trace_context import HEADER

Value = str | int | float | bool
FLUSH_MS = 2000
KINDS = {
    "inside": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}
Kind = Literal["inside", "server", "producer", "consumer"]
_context = TraceContextTextMapPropagator()


class Span:
    """A timed operation."""

    def __init__(self, span: OpenSpan) -> None:
        self._span = span
        where = span.get_span_context()
        self.header = f"00-{where.trace_id:032x}-{where.span_id:016x}-{int(where.trace_flags):02x}"
        """The header to pass on to those who work on behalf of this span."""

    def name(self, name: str) -> None:
        """Rename the span."""
        self._span.update_name(name)

    def end(self, problem: str = "", **attributes: Value) -> None:
        """End the span; `problem` says what went wrong."""
        self._span.set_attributes(attributes)
        if problem:
            self._span.set_status(Status(StatusCode.ERROR, problem))
        self._span.end()


class Tracer:
    """The spans of one program, sent in the background as the OTEL_* variables say."""

    def __init__(self, program: str) -> None:
        own: Mapping[str, Value] = {"service.namespace": "steadfast", "service.name": program}
        if "OTEL_SERVICE_NAME" in os.environ:
            # What the operator names wins, but the library takes a given attribute over the variable.
            own = {}
        self._provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("steadfast")

    def start_span(self, name: str, within: str = "", *, kind: Kind = "inside", **attributes: Value) -> Span:
        """Begin a span, within the one whose header is given, or as a new trace."""
        context = _context.extract({HEADER: within})
        return Span(self._tracer.start_span(name, context=context, kind=KINDS[kind], attributes=attributes))

    def flush(self) -> None:
        """Send pending spans; tries for two seconds."""
        self._provider.force_flush(FLUSH_MS)

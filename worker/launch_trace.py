"""Trace spans of a run's start: until its processes are started, and until its first line is stored."""

from __future__ import annotations

from services.kit.spans import Span, Tracer


class LaunchTrace:
    """The spans of one run's start, within the span of its assignment."""

    def __init__(self, tracer: Tracer, parent: str, allocation_id: str) -> None:
        self._tracer = tracer
        self._allocation_id = allocation_id
        self._open_span: Span | None = self._start_span("start", parent)

    def _start_span(self, what: str, parent: str) -> Span:
        return self._tracer.start_span(
            f"worker {what}", parent, kind="consumer", allocation=self._allocation_id
        )

    def started(self) -> str:
        """End the first span, as the processes run. Returns its header."""
        if self._open_span is None:
            return ""
        header = self._open_span.header
        self._open_span.end()
        self._open_span = self._start_span("first line", header)
        return header

    def finish(self, problem: str = "") -> None:
        """End the second span: the first line is stored, or there will be none."""
        if self._open_span is not None:
            self._open_span.end(problem)
            self._open_span = None

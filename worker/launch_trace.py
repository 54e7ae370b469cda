"""Trace spans of a run's start: until its processes are started, and until its first line is stored."""

from __future__ import annotations

from services.kit.spans import Span, Tracer


class LaunchTrace:
    """The spans of one run's start, within the span of its assignment."""

    def __init__(self, tracer: Tracer, within: str, allocation_id: str) -> None:
        self._tracer = tracer
        self._allocation_id = allocation_id
        self._open: Span | None = self._begin("start", within)

    def _begin(self, what: str, within: str) -> Span:
        return self._tracer.begin(f"worker {what}", within, kind="consumer", allocation=self._allocation_id)

    def started(self) -> str:
        """End the first span, as the processes run. Returns its header."""
        if self._open is None:
            return ""
        header = self._open.header
        self._open.end()
        self._open = self._begin("first line", header)
        return header

    def over(self, problem: str = "") -> None:
        """End the second span: the first line is stored, or there will be none."""
        if self._open is not None:
            self._open.end(problem)
            self._open = None

"""Remembers that a pass found nothing to do, so that the next pass can be skipped."""

from __future__ import annotations

from collections.abc import Callable

from services.scheduler.policy.records import Request


class IdlePass:
    """Holds until something changes, or until a request arrives that may matter."""

    def __init__(self) -> None:
        self._changes_nothing: Callable[[Request], bool] | None = None
        self._facts: object = None
        self._new_requests: list[Request] = []

    def record(self, changes_nothing: Callable[[Request], bool], facts: object = None) -> None:
        """Record that a pass found nothing to do.

        `changes_nothing` returns whether a new request would not change that. `facts` are what the pass found
        out, which then remains true, too.
        """
        self._changes_nothing, self._facts, self._new_requests = changes_nothing, facts, []

    def invalidate(self) -> None:
        """Record that something changed."""
        self._changes_nothing, self._facts, self._new_requests = None, None, []

    def add_request(self, request: Request) -> None:
        """Record that a request began to wait."""
        if self._changes_nothing is not None:
            self._new_requests.append(request)

    def is_valid(self) -> bool:
        """Whether a pass would find nothing to do."""
        if self._changes_nothing is None:
            return False
        new_requests, self._new_requests = self._new_requests, []
        if not all(map(self._changes_nothing, new_requests)):
            self.invalidate()
        return self._changes_nothing is not None

    def facts(self) -> object:
        """What the last pass found out, if it still holds; otherwise None."""
        return self._facts if self.is_valid() else None

"""Remembers that a pass found nothing to do, so that the next pass can be skipped."""

from __future__ import annotations

from collections.abc import Callable

from services.scheduler.policy.records import Request


class IdlePass:
    """Holds until something changes, or until a request arrives that may matter."""

    def __init__(self) -> None:
        self._changes_nothing: Callable[[Request], bool] | None = None
        self._new_requests: list[Request] = []

    def record(self, changes_nothing: Callable[[Request], bool]) -> None:
        """Record that a pass found nothing to do.

        `changes_nothing` returns whether a new request would not change that.
        """
        self._changes_nothing, self._new_requests = changes_nothing, []

    def invalidate(self) -> None:
        """Record that something changed."""
        self._changes_nothing, self._new_requests = None, []

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

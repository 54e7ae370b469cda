"""Remembers that a pass found nothing to do, so that the next pass can be skipped."""

from __future__ import annotations

from collections.abc import Callable

from services.scheduler.policy.records import Request


class Quiet:
    """Holds until something changes, or until a request arrives that may matter."""

    def __init__(self) -> None:
        self._ignores: Callable[[Request], bool] | None = None
        self._news: list[Request] = []

    def begin(self, ignores: Callable[[Request], bool]) -> None:
        """Record that a pass found nothing to do.

        `ignores` returns whether a new request would not change that.
        """
        self._ignores, self._news = ignores, []

    def end(self) -> None:
        """Record that something changed."""
        self._ignores, self._news = None, []

    def came(self, request: Request) -> None:
        """Record that a request began to wait."""
        if self._ignores is not None:
            self._news.append(request)

    def holds(self) -> bool:
        """Whether a pass would find nothing to do."""
        if self._ignores is None:
            return False
        news, self._news = self._news, []
        if not all(map(self._ignores, news)):
            self.end()
        return self._ignores is not None

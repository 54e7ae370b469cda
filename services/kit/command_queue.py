"""Commands waiting to be decided: in order per user, and round-robin between users."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from det_contracts.problems import Problem, Refused
from services.kit.rules import Call

LIMIT = 20_000
"""Maximum number of waiting commands in total."""
LIMIT_PER_USER = 5_000
"""Maximum number of waiting commands per user."""


class Pending:
    """A command waiting to be decided."""

    def __init__(self, command: Any, call: Call) -> None:
        self.command = command
        self.call = call
        self.user = str(getattr(command, "user", ""))
        self.payer = call.script or self.user
        """Whose share of the log it takes: a script has its own. Empty for services."""
        self.answer: asyncio.Future[tuple[int, Any]] = asyncio.get_running_loop().create_future()
        self.stored: tuple[int, Any] | None = None
        """The result, once read back from the log: position of its last event, and value."""
        self.answer_from: int | None = None
        """Position that the state must have reached for an answer that stores nothing; None: not known yet.
        """
        self.parts = 0
        """Number of rounds filled by parts of this command."""

    def succeed(self, position: int, value: Any) -> None:
        """Answer the command, unless the caller has gone."""
        if not self.answer.done():
            self.answer.set_result((position, value))

    def fail(self, problem: Refused) -> None:
        """Refuse the command, unless the caller has gone."""
        if not self.answer.done():
            self.answer.set_exception(problem)


class CommandQueue:
    """The commands of one owner. A user with many commands delays others by at most one command at a time."""

    def __init__(self, limit: int = LIMIT, limit_per_user: int = LIMIT_PER_USER) -> None:
        self._limit = limit
        self._limit_per_user = limit_per_user
        self._by_user: dict[str, deque[Pending]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, pending: Pending) -> None:
        """Add a command. Raises `Refused` (exhausted) if too many are waiting."""
        queue = self._by_user.get(pending.user, ())
        if self._count >= self._limit or len(queue) >= self._limit_per_user:
            raise Refused(
                Problem(
                    "exhausted",
                    f"{self._count} commands wait to be decided, {len(queue)} of them of "
                    f"'{pending.user}': send the next ones when some of those are answered",
                    retry_after_s=1,
                )
            )
        self._by_user.setdefault(pending.user, deque()).append(pending)
        self._count += 1

    def pop(self) -> Pending | None:
        """Return the next command whose caller is still waiting, or None."""
        while self._by_user:
            user = next(iter(self._by_user))
            queue = self._by_user.pop(user)
            pending = queue.popleft()
            self._count -= 1
            if queue:
                # Back in at the end: the order of the dictionary is the order in which users take their
                # turns.
                self._by_user[user] = queue
            # A caller that timed out must not have its command executed now: it could undo later requests.
            if not pending.answer.done():
                return pending
        return None

    def put_back(self, taken: Iterable[Pending]) -> None:
        """Put commands back at the front of their users' queues. They have had no effect."""
        # From the last to the first, since each goes in front of those before it.
        for pending in reversed(list(taken)):
            # Without the limits of `put`: these were accepted, and their callers wait.
            self._by_user.setdefault(pending.user, deque()).appendleft(pending)
            self._count += 1

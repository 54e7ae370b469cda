"""Commands that wait for their ruling: each person's in order, and person after person in turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from det_contracts.problems import Problem, Refused
from services.kit.rules import Call

LIMIT = 20_000
"""Commands that may wait, of everybody together."""
LIMIT_OF_ONE = 5_000
"""Commands that may wait, of one person."""


class Pending:
    """A command that waits for its ruling."""

    def __init__(self, command: Any, call: Call) -> None:
        self.command = command
        self.call = call
        self.user = str(getattr(command, "user", ""))
        self.answer: asyncio.Future[tuple[int, Any]] = asyncio.get_running_loop().create_future()
        self.stored: tuple[int, Any] | None = None
        """What it led to, once that was read back: position of its last event, and value."""
        self.parts = 0
        """Rounds that it has filled and that were not all of it."""

    def succeed(self, position: int, value: Any) -> None:
        """Answer, unless whoever asked has gone."""
        if not self.answer.done():
            self.answer.set_result((position, value))

    def fail(self, problem: Refused) -> None:
        """Refuse, unless whoever asked has gone."""
        if not self.answer.done():
            self.answer.set_exception(problem)


class Waiting:
    """The commands of one owner. Who sends many waits for those, and holds up others by one at a time."""

    def __init__(self, limit: int = LIMIT, limit_of_one: int = LIMIT_OF_ONE) -> None:
        self._limit = limit
        self._limit_of_one = limit_of_one
        self._by_user: dict[str, deque[Pending]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, pending: Pending) -> None:
        """Let a command wait; raises `Refused` (exhausted) where too many do."""
        mine = self._by_user.get(pending.user, ())
        if self._count >= self._limit or len(mine) >= self._limit_of_one:
            raise Refused(
                Problem(
                    "exhausted",
                    f"{self._count} commands wait to be decided, {len(mine)} of them of "
                    f"'{pending.user}': send the next ones when some of those are answered",
                )
            )
        self._by_user.setdefault(pending.user, deque()).append(pending)
        self._count += 1

    def take(self) -> Pending | None:
        """The next one whose asker still waits; None where there is none."""
        while self._by_user:
            user = next(iter(self._by_user))
            mine = self._by_user.pop(user)
            pending = mine.popleft()
            self._count -= 1
            if mine:
                self._by_user[user] = mine
            # Who was told that nobody answered: done now, it would undo what was asked for since.
            if not pending.answer.done():
                return pending
        return None

    def back(self, taken: Iterable[Pending]) -> None:
        """Let commands wait again, before all others of the same person: nothing came of them."""
        for pending in reversed(list(taken)):
            self._by_user.setdefault(pending.user, deque()).appendleft(pending)
            self._count += 1

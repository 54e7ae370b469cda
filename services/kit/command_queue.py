"""Commands waiting to be decided: in order per user, and round-robin between users.

Each waits first until the state has read all that was in the log when it arrived (docs/decisions/0095).
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
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
        self._arrived: list[Pending] = []
        """For which nobody knows yet where the log ended."""
        self._held: deque[tuple[int, list[Pending]]] = deque()
        """Those that arrived together, each time with the position that the state must have reached."""
        self._by_user: dict[str, deque[Pending]] = {}
        """Those that can be decided."""
        self._counts: Counter[str] = Counter()
        """Number of waiting commands per user."""
        self._total = 0
        self._arrival = asyncio.Event()

    def __len__(self) -> int:
        return self._total

    @property
    def has_ready(self) -> bool:
        """Whether a command can be decided."""
        return bool(self._by_user)

    def put(self, pending: Pending) -> None:
        """Add a command. Raises `Refused` (exhausted) if too many are waiting."""
        own = self._counts[pending.user]
        if self._total >= self._limit or own >= self._limit_per_user:
            raise Refused(
                Problem(
                    "exhausted",
                    f"{self._total} commands wait to be decided, {own} of them of "
                    f"'{pending.user}': send the next ones when some of those are answered",
                    retry_after_s=1,
                )
            )
        self._count(pending.user, 1)
        self._arrived.append(pending)
        self._arrival.set()

    async def hold_arrivals(self, find_end: Callable[[], Awaitable[int]]) -> None:
        """Wait for commands, and hold those that have arrived until the state has read the log to its end."""
        await self._arrival.wait()
        self._arrival.clear()
        # Those that arrive while the log is asked may follow facts that the answer does not count.
        count = len(self._arrived)
        end = await find_end()
        self._held.append((end, self._arrived[:count]))
        del self._arrived[:count]

    def release(self, position: float) -> None:
        """Make those ready for which the state has read enough of the log."""
        while self._held and self._held[0][0] <= position:
            for pending in self._held.popleft()[1]:
                self._by_user.setdefault(pending.user, deque()).append(pending)

    def pop(self) -> Pending | None:
        """Return the next command that can be decided and whose caller is still waiting, or None."""
        while self._by_user:
            user = next(iter(self._by_user))
            queue = self._by_user.pop(user)
            pending = queue.popleft()
            self._count(user, -1)
            if queue:
                # Back in at the end: the order of the dictionary is the order in which users take their
                # turns.
                self._by_user[user] = queue
            # A caller that timed out must not have its command executed now: it could undo later requests.
            if not pending.answer.done():
                return pending
        return None

    def _count(self, user: str, change: int) -> None:
        self._total += change
        self._counts[user] += change
        if not self._counts[user]:
            del self._counts[user]

    def put_back(self, taken: Iterable[Pending]) -> None:
        """Put commands back at the front of their users' queues. They have had no effect."""
        # From the last to the first, since each goes in front of those before it.
        for pending in reversed(list(taken)):
            # Without the limits of `put`: these were accepted, and their callers wait.
            self._by_user.setdefault(pending.user, deque()).appendleft(pending)
            self._count(pending.user, 1)

    def take_all(self) -> list[Pending]:
        """Remove all commands, decidable or not, and return those whose callers are still waiting."""
        self._held.append((0, self._arrived))
        self._arrived = []
        self.release(math.inf)
        return list(iter(self.pop, None))

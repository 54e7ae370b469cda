"""Answers questions from scripts about their own trial, at once or as soon as there is news.

Thousands may wait. A waiter is a future registered under the record that can bring news, and it is woken when
that record changes. No lock is held, and a client that disconnects is dropped at the latest when its wait
ends.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from det_contracts import subjects
from det_contracts.limits import STATED_BYTES
from det_contracts.problems import invalid
from det_contracts.script_queries import WAIT_S
from services.kit.bus import BusServer, name_of
from services.kit.roots import PageFault
from services.kit.rules import Key

V = TypeVar("V")
MAX_PER_TRIAL = 64
"""Maximum number of waiting requests per trial, one per rank. Further ones are answered at once, without
news."""


class ChangeSource(Protocol):
    """Reports which records were folded."""

    def watch(self, on_changed: Callable[[Collection[Key]], None], on_reload: Callable[[], None]) -> None:
        """Call `on_changed` with the keys of each folded batch, and `on_reload` after a reload."""


class RecordWaiters:
    """All waiters for news about one service's records."""

    def __init__(self, saver: ChangeSource) -> None:
        self._waiting: defaultdict[Key, dict[asyncio.Future[None], None]] = defaultdict(dict)
        saver.watch(self._on_changed, self._on_reload)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _on_changed(self, keys: Collection[Key]) -> None:
        # Iterate over the smaller set: a starting replica folds a million records while nothing waits.
        smaller = keys if len(keys) < len(self._waiting) else list(self._waiting)
        for key in smaller:
            if key in keys and key in self._waiting:
                self._wake(key)

    def _on_reload(self) -> None:
        for key in self._waiting:
            self._wake(key)

    def _wake(self, key: Key) -> None:
        for waiter in self._waiting[key]:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_until(self, key: Key, find_answer: Callable[[], V | None], wait_s: float) -> V | None:
        """Return what `find_answer` has about a record as soon as it is not None, or None after `wait_s`
        seconds."""
        waiters = self._waiting[key]
        if len(waiters) >= MAX_PER_TRIAL:
            return _try_answer(find_answer)
        try:
            # The script names the time, and must not be able to keep a place for longer.
            async with asyncio.timeout(min(max(wait_s, 0.0), WAIT_S)):
                while (answer := _try_answer(find_answer)) is None:
                    waiter = asyncio.get_running_loop().create_future()
                    # The look and the registration have no await between them, so no news can come unnoticed.
                    waiters[waiter] = None
                    try:
                        await waiter
                    finally:
                        del waiters[waiter]
            return answer
        except TimeoutError:
            return None
        finally:
            if not waiters and self._waiting.get(key) is waiters:
                del self._waiting[key]


def _try_answer(find_answer: Callable[[], V | None]) -> V | None:
    try:
        return find_answer()
    except PageFault:
        # No news for now; all waiters look again once the state is reloaded.
        return None


ScriptHandler = Callable[[int, Any], Awaitable[Any]]
"""Answers a question in the name of a trial, given by its id. Raises `Refused`."""


async def serve_scripts(
    bus_server: BusServer, kinds: Mapping[type[Any], ScriptHandler]
) -> list[Subscription]:
    """Answer questions from scripts, sharing the work with other replicas."""
    return [
        await bus_server.serve_scripts(name_of(kind), _handler_of(kind, find_answer))
        for kind, find_answer in kinds.items()
    ]


def _handler_of(kind: type[Any], find_answer: ScriptHandler) -> Callable[[Msg], Awaitable[tuple[int, Any]]]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

    async def answer(message: Msg) -> tuple[int, Any]:
        if len(message.data) > STATED_BYTES:
            raise invalid("the question is too large")
        try:
            question = decoder.decode(message.data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise invalid(f"the question cannot be read: {error}") from None
        # The broker lets a script publish only under its own trial, so trust the subject, not the body.
        return 0, await find_answer(subjects.trial_of_question(message.subject), question)

    return answer

"""Makes deliveries while this replica leads: one at a time per webhook, all webhooks concurrently.

A slow receiver delays only its own deliveries, as does one whose deliveries fail in unforeseen ways. A
delivery that was in progress when the process ended is repeated under the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from typing import Any, Protocol

import structlog

from det_contracts.events.webhooks import WebhookSet
from det_contracts.problems import Refused
from services.kit.cancellation import cancel_and_wait
from services.kit.log import OutcomeUnknown
from services.kit.rules import Call
from services.kit.sealing import CannotOpen
from services.kit.stream_positions import StreamPositions
from services.webhooks import messages
from services.webhooks.commands import StateAttempt
from services.webhooks.domain import Delivery, State
from services.webhooks.sending import Result

COMMAND_TIMEOUT_S = 5.0
MIN_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
MAX_WAIT_S = 60.0
"""Maximum time between two looks, in seconds: a changed host clock can make a distant time due."""
Open = Callable[[str], str]
"""Decrypts a sealed text. Raises `CannotOpen`."""
log = structlog.get_logger()


class CommandRunner(Protocol):
    """The service's runner."""

    @property
    def state(self) -> State:
        """The folded state."""

    @property
    def stream_positions(self) -> StreamPositions:
        """How far it is folded."""

    async def command(self, command: Any, call: Call, within_s: float | None = None) -> Any:
        """Have a command decided. Raises `Refused`."""

    async def wait_for_change(self, after: int) -> int:
        """Wait until something was folded or leadership may have changed."""


class Transport(Protocol):
    """Makes the requests."""

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> Result:
        """Make one attempt, with a time limit."""


class Lanes:
    """The deliveries in progress, by webhook."""

    def __init__(
        self,
        runner: CommandRunner,
        transport: Transport,
        open_sealed: Open,
        is_leader: Callable[[], bool],
        address: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._runner = runner
        self._transport = transport
        self._open = open_sealed
        self._is_leader = is_leader
        self._address = address
        self._clock = clock
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._failures: dict[int, int] = {}
        """Number of consecutive times that a lane failed unexpectedly or could not store its result."""
        self._backoff_until: dict[int, float] = {}
        """When such a lane is restarted."""

    async def run(self) -> None:
        """Deliver until cancelled."""
        news_count = 0
        try:
            while True:
                wait_s = self._start_due() if self._may_deliver() else MAX_WAIT_S
                news_count = await self._wait_for_work(news_count, wait_s)
        finally:
            await cancel_and_wait(*self._busy.values())

    def _may_deliver(self) -> bool:
        # A state that was loaded anew does not show yet what was delivered before.
        return self._is_leader() and not self._runner.stream_positions.is_behind

    async def _wait_for_work(self, news_count: int, wait_s: float) -> int:
        """Wait for news, for the end of a lane, or for as long; returns how much news there is."""
        if not self._busy:
            # As nearly always: the log goes by, and nobody is to be told of it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    return await self._runner.wait_for_change(news_count)
            return news_count
        news = asyncio.ensure_future(self._runner.wait_for_change(news_count))
        try:
            waiting = {news, *self._busy.values()}
            await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return news.result() if news.done() else news_count
        finally:
            await cancel_and_wait(news)

    def _start_due(self) -> float:
        """Start every lane with a due delivery. Returns when to look again, in seconds from now."""
        state, now, next_at = self._runner.state, self._clock(), self._clock() + MAX_WAIT_S
        for removed in self._failures.keys() - state.webhooks.keys():
            self._clear_backoff(removed)
        for id in sorted(state.webhooks.keys() - self._busy.keys()):
            delivery = state.next_delivery(id)
            if delivery is None:
                continue
            at = max(delivery.next_at or 0.0, self._backoff_until.get(id, 0.0))
            if at <= now:
                self._busy[id] = asyncio.create_task(self._deliver(id))
            else:
                next_at = min(next_at, at)
        return next_at - now

    def _due_delivery(self, webhook_id: int) -> Delivery | None:
        delivery = self._runner.state.next_delivery(webhook_id)
        return delivery if delivery is not None and (delivery.next_at or 0.0) <= self._clock() else None

    async def _deliver(self, webhook_id: int) -> None:
        """Make a webhook's due deliveries. A failure only pauses this lane; all others continue."""
        try:
            # Looked up after each attempt: the webhook may have been removed, or a test may go first now.
            while self._may_deliver() and (delivery := self._due_delivery(webhook_id)) is not None:
                await self._attempt_and_record(webhook_id, delivery)
                self._clear_backoff(webhook_id)
        except (Refused, OutcomeUnknown) as error:
            # The attempt's result is not recorded, so the attempt is repeated under the same id.
            self._back_off(webhook_id)
            log.warning("attempt.not_stored", webhook=webhook_id, error=str(error))
        except Exception:
            self._back_off(webhook_id)
            log.exception("lane.failed", webhook=webhook_id, again_in_s=self._backoff_s(webhook_id))
        finally:
            del self._busy[webhook_id]

    def _clear_backoff(self, webhook_id: int) -> None:
        self._failures.pop(webhook_id, None)
        self._backoff_until.pop(webhook_id, None)

    def _back_off(self, webhook_id: int) -> None:
        self._failures[webhook_id] = self._failures.get(webhook_id, 0) + 1
        self._backoff_until[webhook_id] = self._clock() + self._backoff_s(webhook_id)

    def _backoff_s(self, webhook_id: int) -> float:
        times: int = self._failures[webhook_id]
        return min(MIN_BACKOFF_S * 2.0 ** min(times - 1, 10), MAX_BACKOFF_S)

    async def _attempt_and_record(self, webhook_id: int, delivery: Delivery) -> None:
        """Make an attempt and have it recorded. Raises `Refused` or `OutcomeUnknown` if that fails."""
        result = await self._attempt(self._runner.state.webhooks[webhook_id], delivery)
        attempt = StateAttempt(
            delivery_id=delivery.due.delivery_id,
            attempt=len(delivery.tries) + 1,
            status=result.status,
            problem=result.problem,
            final=result.final,
            took_s=result.took_s,
            chance=random.random(),  # noqa: S311 - spreads, keeps no secret
        )
        await self._runner.command(attempt, Call(attempt.delivery_id, self._clock()), COMMAND_TIMEOUT_S)

    async def _attempt(self, hook: WebhookSet, delivery: Delivery) -> Result:
        try:
            url, key = self._open(hook.url), self._open(hook.signing_key)
        except CannotOpen as error:
            return Result(problem=f"the address cannot be opened: {error}", final=True)
        try:
            body = messages.body(hook.kind, delivery.due, self._address)
            headers = messages.headers(hook.kind, delivery.due, body, key, self._clock())
            return await self._transport.send(url, body, headers)
        except Exception as error:
            # An attempt that cannot be made counts as failed, so the delivery is given up eventually and
            # later ones follow. The error text may contain the address, which only the webhook's owner may
            # see.
            log.exception("attempt.failed", webhook=hook.webhook_id, delivery=delivery.due.delivery_id)
            return Result(problem=f"the attempt could not be made ({type(error).__name__}): see the log")

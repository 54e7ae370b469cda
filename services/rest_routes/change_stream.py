"""Streams an answer again whenever it changes, until its subject is over."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from det_contracts.problems import invalid
from services.catalogue.domain import State
from services.catalogue.waiters import Fact
from services.rest_requests.api_call import UserCall
from services.web.query import Periodic

PERIOD_S = 30.0
Pages = AsyncIterator[list[Any]]


def period_s(query: Periodic) -> float:
    """The requested interval between checks, in seconds (`periodSeconds`). Raises `Refused` below 0."""
    wanted = query.period_seconds
    if wanted < 0:
        raise invalid(f"period_seconds must not be {wanted}; 0 means every {PERIOD_S:.0f} s")
    return wanted or PERIOD_S


async def stream_changes(
    call: UserCall,
    fetch: Callable[[], Awaitable[Any]],
    is_over: Fact,
    every_s: float,
) -> Pages:
    """Yield the result of `fetch` whenever it has changed, for the last time once `is_over` holds."""

    async def whole() -> AsyncIterator[Any]:
        yield await fetch()

    async for page in stream_changed_parts(call, whole, is_over, every_s):
        yield page


async def stream_changed_parts(
    call: UserCall,
    fetch: Callable[[], AsyncIterator[Any]],
    is_over: Fact,
    every_s: float,
) -> Pages:
    """Yield each part of an answer that may be long, and later those that have changed."""
    digests: list[bytes] = []
    while True:
        # Check before asking, so that the final answer includes everything up to the end.
        over = call.catalogue.waiters.holds(is_over)
        number = 0
        async for part in fetch():
            # Also where nothing has changed: a client chooses how often its streams look, and has thousands.
            await call.take_turn()
            digest = hashlib.blake2b(msgspec.json.encode(part), digest_size=16).digest()
            if digests[number : number + 1] != [digest]:
                digests[number : number + 1] = [digest]
                yield [part]
            number += 1
        if over:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await call.catalogue.wait_until(is_over)
        # A stream may last for days, and the session or the right may end before it.
        call.recheck()


def experiments_ended(ids: list[int]) -> Fact:
    """The fact that all of these experiments have ended or are gone."""

    def over(state: State) -> bool:
        experiments = (state.experiments.get(id) for id in ids)
        return all(experiment is None or experiment.ended_at is not None for experiment in experiments)

    return Fact(over, tuple(("experiments", id) for id in ids))


def trial_ended(id: int) -> Fact:
    """The fact that a trial has ended or is gone."""

    def over(state: State) -> bool:
        trial = state.trials.get(id)
        return trial is None or trial.ended_at is not None

    return Fact(over, (("trials", id),))


def runs_ended(ids: list[str]) -> Fact:
    """The fact that none of these allocations is alive."""
    return Fact(lambda state: all(id not in state.live for id in ids), tuple(("live", id) for id in ids))


ALREADY_ENDED = Fact(lambda _: True, ())
"""A fact that already holds, for a single answer."""

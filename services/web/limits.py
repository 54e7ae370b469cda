"""Concurrency limits per kind of work, in total and per user."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from services.kit.admission import Admission
from services.kit.process_metrics import Reading
from services.web.pacing import Pacing
from services.web.turns import Turns

T = TypeVar("T")
BACKGROUND_NICENESS = 5
"""Niceness of threads whose work must not delay other requests."""


class Lane:
    """A thread pool for one kind of blocking work, so that no other kind waits for it."""

    def __init__(
        self, what: str, *, threads: int, each: int, waiting: int, each_waiting: int, niceness: int = 0
    ) -> None:
        """Set the number of threads in total and per user, and how many jobs may wait, in total and per user.

        `niceness` lowers the priority of these threads.
        """
        self.admission = Admission(
            what, at_once=threads, each=each, waiting=waiting, each_waiting=each_waiting
        )
        self.threads = ThreadPoolExecutor(threads, what.replace(" ", "-"), _lower_priority, (niceness,))

    async def run(self, who: str, work: Callable[..., T], *arguments: Any) -> T:
        """Run work in a thread.

        Raises `Busy`. A cancelled caller does not stop the work, which keeps its place.
        """
        await self.admission.acquire(who)
        try:
            future = self.threads.submit(work, *arguments)
        except BaseException:
            self.admission.release(who)
            raise
        loop = asyncio.get_running_loop()
        # When the thread has ended, not when the caller has: a thread cannot be cancelled, and would work
        # beyond the limit.
        future.add_done_callback(lambda _: _call_in_loop(loop, self.admission.release, who))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Stop accepting work."""
        self.threads.shutdown(wait=False, cancel_futures=True)


def _lower_priority(niceness: int) -> None:
    """Lower the priority of this thread only; Linux treats each thread id like a process id."""
    if niceness:
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + niceness)


def _call_in_loop(loop: asyncio.AbstractEventLoop, work: Callable[..., None], *arguments: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(work, *arguments)


class Limits:
    """All limits of one gateway."""

    def __init__(self, streams: int, streams_each: int, requests_each: int, requests_rate: float) -> None:
        """Create the limits of a gateway.

        `streams` and `streams_each` limit long-lived answers, such as followed logs and open pages, in total
        and per user. For `requests_each` and `requests_rate`, see `Pacing`.
        """
        self.pacing = Pacing(requests_each, requests_rate)
        self.request_turns, self.data_turns = Turns(), Turns()
        self.streams = Admission(
            "streams and waiting requests", at_once=streams, each=streams_each, waiting=0
        )
        # Each reads all that is added to the log for itself.
        self.log_followers = Admission("followed logs of the cluster", at_once=128, each=16, waiting=0)
        self.uploads = Admission("large requests", at_once=32, each=4, waiting=0)
        self.previews = Admission("previews", at_once=4, each=1, waiting=16, each_waiting=4)
        # Each check takes about 100 ms and much memory on purpose (Argon2id), so that few may run at once.
        self.passwords = Lane(
            "checks of passwords", threads=2, each=1, waiting=64, each_waiting=8, niceness=BACKGROUND_NICENESS
        )
        self.sign_ins = Lane("sign-ins with a provider", threads=4, each=2, waiting=64, each_waiting=8)
        self.probes = Lane("checks of storage", threads=4, each=2, waiting=64, each_waiting=16)
        self.contexts = Lane("contexts", threads=4, each=2, waiting=64, each_waiting=16)
        self.code_downloads = Admission(
            "downloads of code", at_once=16, each=4, waiting=64, each_waiting=16, patience_s=30.0
        )
        # Nobody waits: a download takes minutes to hours, and a client would give up before its turn.
        self.downloads = Lane("downloads of checkpoints", threads=16, each=4, waiting=0, each_waiting=0)
        self._lanes = (self.passwords, self.sign_ins, self.probes, self.contexts, self.downloads)

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings: places taken and wanted, by kind of work."""
        kinds = [
            self.streams,
            self.log_followers,
            self.uploads,
            self.previews,
            self.code_downloads,
            self.pacing.admission,
            *(lane.admission for lane in self._lanes),
        ]
        for name, help, counts in (
            ("places_taken", "Places taken, by kind of work", {(kind.what,): kind.active for kind in kinds}),
            ("places_wanted", "Waiting for a place, by kind", {(kind.what,): kind.queued for kind in kinds}),
        ):
            yield Reading(name, help, ("kind",), counts)
        yield from self.pacing.readings()

    def close(self) -> None:
        """Stop accepting work."""
        for lane in self._lanes:
            lane.close()

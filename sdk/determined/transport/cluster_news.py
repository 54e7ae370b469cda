"""News from the cluster for a script: operations, preemption, refused reports.

Each is a long-poll request to the owner, which replies when there is news.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from det_contracts import script_queries, subjects
from det_contracts.commands import Answer
from determined.transport.bus_thread import HURRY_S, BusThread
from determined.transport.protocol import SearcherOp
from determined.transport.waiting import TOLD_EVERY_S

logger = logging.getLogger("determined.transport")

MARGIN_S = 5.0
"""Extra time for a reply sent at the last moment to arrive."""
RETRY_S = 0.5
"""Minimum time between two requests if the first brought nothing."""


class ClusterNews:
    """The news that one run of a trial has received so far."""

    def __init__(self, thread: BusThread, trial_id: int, run: int, allocation_id: str) -> None:
        self._thread = thread
        self._trial = trial_id
        self._run = run
        self._allocation = allocation_id
        self._lock = threading.Condition()
        self._op: SearcherOp | None = None
        self._idled = 0
        self._blocked = 0
        """Number of calls that are blocked waiting for news."""
        self.leave_answered: Future[None] = Future()
        """Done once the scheduler has said for the first time whether to exit."""
        self.preempted = False
        self.refusals: deque[str] = deque()

    def start(self) -> None:
        """Start polling in the background."""
        self._thread.keep_going(self._hear_operations, "listening to the searcher")
        self._thread.keep_going(self._hear_leave, "listening to the scheduler")
        self._thread.keep_going(self._hear_refusals, "listening to the metrics service")

    def operation(self) -> SearcherOp | None:
        """Return the open operation, or None if there is none. Waits for the searcher's first message."""
        self._wait_until(lambda: self._op is not None, "the trial's next operation")
        op = self._op
        return op if op is not None and op.seq > self._idled else None

    def wait_for_answer_to(self, seq: int) -> None:
        """Block until the searcher has answered the completion of an operation."""
        self._wait_until(
            lambda: self._idled >= seq or (self._op is not None and self._op.seq > seq),
            f"the searcher's answer to operation {seq}",
        )

    async def _hear_operations(self) -> None:
        newest: script_queries.Operations | None = None
        while True:
            # Short while a call waits: that a replica has died is noticed only when the time of the request
            # is over.
            wait_s = HURRY_S if self._blocked else script_queries.WAIT_S
            reply = await self._news(
                "searcher", script_queries.AskOperations(self._run, newest, wait_s), wait_s
            )
            if reply is not None:
                newest = msgspec.convert(reply, script_queries.Operations)
                self._take_operations(newest)

    def _take_operations(self, reply: script_queries.Operations) -> None:
        if reply.over:
            logger.error(
                "trial %s: a newer run has started; reports of this run no longer count",
                self._trial,
            )
            return
        with self._lock:
            # Only forwards: a replica that is behind may answer after one that is not.
            if reply.seq and (self._op is None or reply.seq > self._op.seq):
                self._op = SearcherOp(reply.seq, reply.length)
            self._idled = max(self._idled, reply.idled)
            self._lock.notify_all()

    async def _hear_leave(self) -> None:
        newest: script_queries.Leave | None = None
        while True:
            reply = await self._news(
                "scheduler", script_queries.AskLeave(self._allocation, newest), script_queries.WAIT_S
            )
            if reply is None:
                continue
            newest = msgspec.convert(reply, script_queries.Leave)
            # Never withdrawn: the script may have begun to leave.
            self.preempted = self.preempted or newest.leave
            if not self.leave_answered.done():
                self.leave_answered.set_result(None)

    async def _hear_refusals(self) -> None:
        # Most scripts never hear of one: none is news only once there is one.
        newest = script_queries.Refusals()
        while True:
            reply = await self._news(
                "metrics", script_queries.AskRefusals(self._run, newest), script_queries.WAIT_S
            )
            if reply is not None:
                newest = msgspec.convert(reply, script_queries.Refusals)
                self.refusals.extend(newest.reasons)

    async def _news(self, owner: str, ask: msgspec.Struct, wait_s: float) -> Any:
        """Return an owner's news since what was last seen, or None if there is none yet."""
        began = time.monotonic()
        subject = subjects.question_of_trial(self._trial, owner, "news")
        body = await self._thread.wait_for_news(
            subject,
            msgspec.json.encode(ask),
            wait_s + MARGIN_S,
            lambda: owner == "searcher" and self._blocked > 0,
        )
        answer = Answer() if body is None else msgspec.json.decode(body, type=Answer)
        if answer.problem is not None:
            logger.warning("the %s sends no news: %s", owner, answer.problem.message)
        if answer.value is None and time.monotonic() - began < RETRY_S:
            await asyncio.sleep(RETRY_S)
        return answer.value

    def _wait_until(self, true: Callable[[], bool], what: str) -> None:
        with self._lock:
            self._blocked += 1
            try:
                while not true():
                    self._thread.check()
                    if not self._lock.wait(TOLD_EVERY_S):
                        logger.warning("waiting for the cluster: %s%s", what, self._thread.trouble)
            finally:
                self._blocked -= 1

"""Blocking requests of a script to the cluster: best validation, quotas, checkpoint metadata."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from det_contracts import script_queries, subjects
from det_contracts.commands import Answer
from determined.transport.bus_thread import BusThread
from determined.transport.outbox import Fact
from determined.transport.refusals import Refused
from determined.transport.waiting import Patience, wait_for

logger = logging.getLogger("determined.transport")

ANSWER_S = 10.0
"""How long a call waits for an answer, once per outage."""
QUOTA_S = 3.0
"""The same, for an answer that the script can do without."""


class Questions:
    """The requests of one trial. Each is answered by the owner of the fact."""

    def __init__(
        self, thread: BusThread, trial_id: int, smaller_is_better: bool, mark: Callable[[], Fact | None]
    ) -> None:
        """`mark` returns what is settled once all that the script has reported so far is stored."""
        self._mark = mark
        self._thread = thread
        self._trial = trial_id
        self._smaller_is_better = smaller_is_better
        self._answers, self._quotas = Patience(ANSWER_S), Patience(QUOTA_S)
        self._storage: Future[Any] | None = None
        self._best: Future[Any] | None = None
        self._best_known: float | None = None

    def best_validation(self) -> float | None:
        """Return the experiment's best searcher metric so far. In an outage, the last known value."""
        # A question that an earlier call stopped waiting for may have been answered since. Its answer is the
        # last known value if this question fails.
        is_new = self._best is None or self._best.done()
        if self._best is None or is_new:
            self._take_best()
            self._best = self._ask(script_queries.AskBest(self._smaller_is_better), after=self._mark())
        if self._answers.lasts(self._best):
            # Of an earlier call's question, the answer may lack what was reported since.
            if not is_new:
                return self.best_validation()
            self._take_best()
        else:
            logger.warning(
                "the cluster does not report the best validation; using the last known value: %s%s",
                *(self._best_known, self._thread.trouble),
            )
            self._thread.check()
        return self._best_known

    def _take_best(self) -> None:
        if self._best is not None:
            value = _value(self._best)
            self._best_known = None if value is None else float(value)

    def storage_refusal(self, size_bytes: int) -> str:
        """Return why the registry refuses another checkpoint of this size, or an empty string."""
        if self._storage is not None and not self._storage.done():
            # The previous request is still unanswered, and a checkpoint must not wait for it.
            return ""
        self._storage = self._ask(script_queries.AskStorage(size_bytes), "checkpoints")
        if not self._quotas.lasts(self._storage):
            logger.warning("no service answered whether a storage quota is used up%s", self._thread.trouble)
            self._thread.check()
            return ""
        try:
            return str(_value(self._storage) or "")
        except RuntimeError as error:
            logger.debug("no service answered whether a storage quota is used up: %s", error)
            return ""

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        """Return a checkpoint's metadata from the registry."""
        reply = self._ask(script_queries.AskMetadata(uuid), after=self._mark())
        wait_for(reply, f"the metadata of checkpoint {uuid}", self._thread)
        return dict(_value(reply) or {})

    def _ask(
        self, question: msgspec.Struct, owner: str = "searcher", after: Fact | None = None
    ) -> "Future[bytes]":
        # The searcher knows the trial's experiment, and forwards the question to the other services.
        subject = subjects.question_of_trial(self._trial, owner, str(type(question).__struct_config__.tag))
        return self._thread.submit(self._send(subject, msgspec.json.encode(question), after))

    async def _send(self, subject: str, body: bytes, after: Fact | None) -> bytes:
        if after is not None:
            # Shielded: who sends the reports settles it, whatever becomes of this question.
            await asyncio.shield(asyncio.wrap_future(after.settled))
        return await self._thread.ask(subject, body)


def _value(reply: "Future[bytes]") -> Any:
    """Return an owner's answer. Raises RuntimeError if the answer is a problem."""
    try:
        answer = msgspec.json.decode(reply.result(), type=Answer)
    except Refused as error:
        raise RuntimeError(str(error)) from error
    if answer.problem is not None:
        raise RuntimeError(answer.problem.message)
    return answer.value

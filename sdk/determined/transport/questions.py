"""What a script asks the cluster and waits for: the best validation, quotas, metadata of checkpoints."""

import logging
from concurrent.futures import Future
from typing import Any

import msgspec

from det_contracts import news, subjects
from det_contracts.commands import Answer
from determined.transport.bus_thread import BusThread
from determined.transport.refusals import Refused
from determined.transport.waiting import Patience, wait_for

logger = logging.getLogger("determined.transport")

ANSWER_S = 10.0
"""How long a call waits, once in an outage, for an answer."""
QUOTA_S = 3.0
"""Likewise for an answer that the script can do without."""


class Questions:
    """The questions of one trial, each answered by the owner of the fact."""

    def __init__(self, thread: BusThread, trial_id: int, smaller_is_better: bool) -> None:
        self._thread = thread
        self._trial = trial_id
        self._smaller_is_better = smaller_is_better
        self._answers, self._quotas = Patience(ANSWER_S), Patience(QUOTA_S)
        self._storage: Future[Any] | None = None
        self._best: Future[Any] | None = None
        self._best_known: float | None = None

    def best_validation(self) -> float | None:
        """The best searcher metric of the experiment so far, as far as this process knows in an outage."""
        if self._best is None or self._best.done():
            self._take_best()
            self._best = self._ask(news.AskBest(self._smaller_is_better))
        if self._answers.lasts(self._best):
            self._take_best()
        else:
            logger.warning(
                "the cluster does not say what the best validation is; its last answer counts: %s%s",
                *(self._best_known, self._thread.trouble),
            )
            self._thread.check()
        return self._best_known

    def _take_best(self) -> None:
        if self._best is not None:
            value = _value(self._best)
            self._best_known = None if value is None else float(value)

    def storage_refusal(self, size_bytes: int) -> str:
        """What the registry says of another checkpoint of so many bytes."""
        if self._storage is not None and not self._storage.done():
            # Nobody has answered since the last time, and a checkpoint does not wait for that.
            return ""
        self._storage = self._ask(news.AskStorage(size_bytes), "checkpoints")
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
        """What the registry holds as metadata of a checkpoint."""
        asked = self._ask(news.AskMetadata(uuid))
        wait_for(asked, f"the metadata of checkpoint {uuid}", self._thread)
        return dict(_value(asked) or {})

    def _ask(self, question: msgspec.Struct, owner: str = "searcher") -> "Future[bytes]":
        # The searcher knows which experiment the trial belongs to, and asks the others about that alone.
        subject = subjects.asked_by_trial(self._trial, owner, str(type(question).__struct_config__.tag))
        return self._thread.submit(self._thread.ask(subject, msgspec.json.encode(question)))


def _value(asked: "Future[bytes]") -> Any:
    """What an owner answered; RuntimeError for a problem that it has."""
    try:
        answer = msgspec.json.decode(asked.result(), type=Answer)
    except Refused as error:
        raise RuntimeError(str(error)) from error
    if answer.problem is not None:
        raise RuntimeError(answer.problem.message)
    return answer.value

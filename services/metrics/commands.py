"""What may be asked of the metrics service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.events.metrics import Settled
from services.kit.rules import Call, Ruling
from services.metrics.domain import State


class Settle(msgspec.Struct, frozen=True, tag="settle"):
    """From the watch beside the service: all that ended trials had stored by their end has been folded."""

    trial_ids: tuple[int, ...]
    user: str = "metrics"


def settle(state: State, command: Settle, call: Call) -> Ruling:
    """State it for those trials whose decisions are all in the log."""
    done = [id for id in command.trial_ids if id in state.ended and not _pending(state, id)]
    return Ruling(
        [Settled(trial_id=id, reason="the trial has ended and all its reports are judged") for id in done]
    )


def _pending(state: State, id: int) -> bool:
    return id in state.trials and bool(state.trials[id].pending)


COMMANDS: dict[Any, Callable[[State, Any, Call], Ruling]] = {Settle: settle}

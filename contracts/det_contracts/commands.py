"""What may be asked of an owner. Answered with the position at which it took effect, or a problem."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.events.searcher import Context
from det_contracts.problems import Problem

Action = Literal["activate", "pause", "cancel", "kill"]


class Answer(msgspec.Struct, frozen=True):
    """Reply to a command or a query: `value` and the position it holds at, or a problem."""

    position: int = 0
    value: Any = None
    problem: Problem | None = None


class CreateExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="create_experiment"):
    """To the searcher, from the gateway. `value` of the answer: the experiment's id."""

    user: str
    config: dict[str, Any]
    original_config: str
    context: Context | None = None
    parent_id: int | None = None
    source_checkpoint: str | None = None
    activate: bool = True
    request_key: str = ""


class ChangeExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="change_experiment"):
    """To the searcher: a person's wish for an experiment (scheduling spec, 8.2)."""

    experiment_id: int
    action: Action
    user: str


class KillTrial(msgspec.Struct, frozen=True, kw_only=True, tag="kill_trial"):
    """To the searcher: end one trial; it ends CANCELED."""

    trial_id: int
    user: str


class CloseSession(msgspec.Struct, frozen=True, kw_only=True, tag="close_session"):
    """To the gateway's own log: a user logged out."""

    session_id: str
    user: str


OWNER_OF: dict[type, str] = {
    CreateExperiment: "searcher",
    ChangeExperiment: "searcher",
    KillTrial: "searcher",
    CloseSession: "gateway",
}

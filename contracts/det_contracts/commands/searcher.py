"""To the searcher: experiments and their trials."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.context import Context
from det_contracts.creation import Creation
from det_contracts.custom_search import CustomOperation
from det_contracts.events.gateway import AgentUser
from det_contracts.ownership import command

Action = Literal["activate", "pause", "cancel", "kill", "archive", "unarchive", "delete"]


Ending = Literal["COMPLETED", "CANCELED", "ERROR"]


@command("searcher")
class CreateExperiment(Creation, frozen=True, kw_only=True, tag="create_experiment"):
    """To the searcher, from the gateway: create an experiment. `value` of the answer: its id."""

    user: str
    config: dict[str, Any]
    original_config: str
    context: Context | None = None
    parent_id: int | None = None
    project_id: int = 1
    source_checkpoint: str | None = None
    activate: bool = True
    request_key: str = ""
    unmanaged: bool = False
    agent_user: AgentUser | None = None
    """Host user that its trials run as on workers."""
    commit: str = ""
    """Description of the git commit of the code; shown with the reason."""


@command("searcher")
class ChangeExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="change_experiment"):
    """To the searcher: a user's action on an experiment (scheduling spec, 8.2)."""

    experiment_id: int
    action: Action
    user: str


@command("searcher")
class KillTrial(msgspec.Struct, frozen=True, kw_only=True, tag="kill_trial"):
    """To the searcher: end one trial; it ends CANCELED."""

    trial_id: int
    user: str


@command("searcher")
class CreateTrial(Creation, frozen=True, kw_only=True, tag="create_trial"):
    """To the searcher: create a trial of an unmanaged experiment. Repeating a `request_id` has no effect."""

    experiment_id: int
    request_id: str
    hparams: dict[str, Any]
    user: str


@command("searcher")
class OpenRun(msgspec.Struct, frozen=True, kw_only=True, tag="open_run"):
    """To the searcher: a script starts to run an unmanaged trial.

    `value` of the answer: `run`, `checkpoint` and `steps_completed` of the `RunOpened`.
    """

    trial_id: int
    resume: bool
    """Whether a trial that has run before may continue."""
    user: str


@command("searcher")
class EndTrial(msgspec.Struct, frozen=True, kw_only=True, tag="end_trial"):
    """To the searcher: the script of an unmanaged trial reports how it ended."""

    trial_id: int
    state: Ending
    user: str


@command("searcher")
class ReviseExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="revise_experiment"):
    """To the searcher: change live fields, as in `ExperimentRevised`. The gateway has checked them."""

    experiment_id: int
    changes: dict[str, Any]
    user: str


@command("searcher")
class PostOperations(msgspec.Struct, frozen=True, kw_only=True, tag="post_operations"):
    """To the searcher: operations that a user-defined search method requests (searchers spec, 8)."""

    experiment_id: int
    operations: tuple[CustomOperation, ...]
    triggered_by: int
    user: str

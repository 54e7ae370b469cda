"""What may be asked of an owner. Answered with the position at which it took effect, or a problem."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.custom_search import CustomOperation
from det_contracts.events.scheduler import PoolSettings
from det_contracts.events.searcher import Context
from det_contracts.problems import Problem

Action = Literal["activate", "pause", "cancel", "kill", "archive", "unarchive", "delete"]


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


class ReviseExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="revise_experiment"):
    """To the searcher: change live fields, as in `ExperimentRevised`; the gateway has checked them."""

    experiment_id: int
    changes: dict[str, Any]
    user: str


class PostOperations(msgspec.Struct, frozen=True, kw_only=True, tag="post_operations"):
    """To the searcher: what a user's own search method asks for on an event (searchers spec, section 8)."""

    experiment_id: int
    operations: tuple[CustomOperation, ...]
    triggered_by: int
    user: str


class ChangeJob(msgspec.Struct, frozen=True, kw_only=True, tag="change_job"):
    """To the scheduler: change what is given of a job's place and share (scheduling spec, section 6).

    `ahead_of` and `behind_of` name another job's experiment.
    """

    experiment_id: int
    user: str
    priority: int | msgspec.UnsetType = msgspec.UNSET
    weight: float | msgspec.UnsetType = msgspec.UNSET
    max_slots: int | msgspec.UnsetType | None = msgspec.UNSET
    resource_pool: str | msgspec.UnsetType = msgspec.UNSET
    ahead_of: int | msgspec.UnsetType = msgspec.UNSET
    behind_of: int | msgspec.UnsetType = msgspec.UNSET


class ConfigurePools(msgspec.Struct, frozen=True, kw_only=True, tag="configure_pools"):
    """To the scheduler, at its start: the pools of the cluster's configuration, by name."""

    pools: dict[str, PoolSettings]
    descriptions: dict[str, str] = {}
    user: str = "configuration"


class SwitchWorker(msgspec.Struct, frozen=True, kw_only=True, tag="switch_worker"):
    """To the scheduler: open a worker for work, or close it; with `drain` what runs may come to its end."""

    worker_id: str
    enabled: bool
    drain: bool = False
    user: str


class SwitchSlot(msgspec.Struct, frozen=True, kw_only=True, tag="switch_slot"):
    """To the scheduler: the same for one slot."""

    worker_id: str
    slot_id: int
    enabled: bool
    drain: bool = False
    user: str


class SetTemplate(msgspec.Struct, frozen=True, kw_only=True, tag="set_template"):
    """To the gateway: keep a partial configuration under a name; `replaces` None: in any case."""

    name: str
    config: dict[str, Any]
    user: str
    replaces: bool | None = None
    """True: there must be one of that name; False: there must be none."""


class RemoveTemplate(msgspec.Struct, frozen=True, kw_only=True, tag="remove_template"):
    """To the gateway: forget a template."""

    name: str
    user: str


class JoinGather(msgspec.Struct, frozen=True, kw_only=True, tag="join_gather"):
    """To the gateway's own log: a member's share of an all-gather within an allocation; idempotent."""

    allocation_id: str
    request_id: str
    peers: int
    data: Any
    user: str


class CloseSession(msgspec.Struct, frozen=True, kw_only=True, tag="close_session"):
    """To the gateway's own log: a user logged out."""

    session_id: str
    user: str


OWNER_OF: dict[type, str] = {
    CreateExperiment: "searcher",
    ChangeExperiment: "searcher",
    ReviseExperiment: "searcher",
    PostOperations: "searcher",
    KillTrial: "searcher",
    ChangeJob: "scheduler",
    ConfigurePools: "scheduler",
    SwitchWorker: "scheduler",
    SwitchSlot: "scheduler",
    SetTemplate: "gateway",
    RemoveTemplate: "gateway",
    CloseSession: "gateway",
    JoinGather: "gateway",
}

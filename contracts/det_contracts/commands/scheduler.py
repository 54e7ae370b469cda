"""To the scheduler: the queue, tasks of people, pools, workers and their slots."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.context import Context
from det_contracts.creation import Creation
from det_contracts.events.gateway import AgentUser
from det_contracts.events.scheduler import OwnKind, PoolSettings


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


class SubmitTask(Creation, frozen=True, kw_only=True, tag="submit_task"):
    """To the scheduler: run a task of somebody's own, as `agent_user`; the same id again has no effect."""

    task_id: str
    kind: OwnKind
    user: str
    name: str
    config: dict[str, Any]
    context: Context | None = None
    slots: int
    pool: str
    priority: int | None = None
    workspace_id: int = 1
    agent_user: AgentUser | None = None


class StopTask(msgspec.Struct, frozen=True, kw_only=True, tag="stop_task"):
    """To the scheduler: end a task at once; of one that is over this means nothing."""

    task_id: str
    user: str


class StateIdle(msgspec.Struct, frozen=True, kw_only=True, tag="state_idle"):
    """To the scheduler: a task is not used, or is used again; it may be idle for `within_s`."""

    task_id: str
    idle: bool
    within_s: float
    user: str


class MarkDaemon(msgspec.Struct, frozen=True, kw_only=True, tag="mark_daemon"):
    """To the scheduler: a part of an allocation serves the others, and ends with them."""

    allocation_id: str
    rank: int
    user: str


class AskToLeave(msgspec.Struct, frozen=True, kw_only=True, tag="ask_to_leave"):
    """To the scheduler: ask a live allocation to save and leave; the trial asks for slots again."""

    allocation_id: str
    user: str


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

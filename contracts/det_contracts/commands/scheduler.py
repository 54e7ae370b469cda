"""To the scheduler: the queue, users' tasks, pools, workers and their slots."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.context import Context
from det_contracts.creation import Creation
from det_contracts.events.gateway import AgentUser
from det_contracts.events.scheduler import OwnKind, PoolSettings
from det_contracts.ownership import command


@command("scheduler")
class ChangeJob(msgspec.Struct, frozen=True, kw_only=True, tag="change_job"):
    """To the scheduler: change the given queue settings of a job (scheduling spec, section 6).

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


@command("scheduler")
class SubmitTask(Creation, frozen=True, kw_only=True, tag="submit_task"):
    """To the scheduler: run a user's task, as `agent_user`. Repeating it with the same id has no effect."""

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


@command("scheduler")
class StopTask(msgspec.Struct, frozen=True, kw_only=True, tag="stop_task"):
    """To the scheduler: end a task immediately. Has no effect on a task that has ended."""

    task_id: str
    user: str


@command("scheduler")
class StateIdle(msgspec.Struct, frozen=True, kw_only=True, tag="state_idle"):
    """To the scheduler: a task is idle, or in use again. It may be idle for `within_s`."""

    task_id: str
    idle: bool
    within_s: float
    user: str


@command("scheduler")
class MarkDaemon(msgspec.Struct, frozen=True, kw_only=True, tag="mark_daemon"):
    """To the scheduler: a part of an allocation serves the others, and ends with them."""

    allocation_id: str
    rank: int
    user: str


@command("scheduler")
class AskToLeave(msgspec.Struct, frozen=True, kw_only=True, tag="ask_to_leave"):
    """To the scheduler: ask a running allocation to save and exit. The trial requests slots again."""

    allocation_id: str
    user: str


@command("scheduler")
class ConfigurePools(msgspec.Struct, frozen=True, kw_only=True, tag="configure_pools"):
    """To the scheduler, at startup: the pools of the cluster's configuration, by name."""

    pools: dict[str, PoolSettings]
    descriptions: dict[str, str] = {}
    user: str = "configuration"


@command("scheduler")
class SwitchWorker(msgspec.Struct, frozen=True, kw_only=True, tag="switch_worker"):
    """To the scheduler: enable a worker, or disable it. With `drain`, running tasks may finish."""

    worker_id: str
    enabled: bool
    drain: bool = False
    user: str


@command("scheduler")
class SwitchSlot(msgspec.Struct, frozen=True, kw_only=True, tag="switch_slot"):
    """To the scheduler: enable or disable one slot."""

    worker_id: str
    slot_id: int
    enabled: bool
    drain: bool = False
    user: str

"""What may be asked of an owner. Answered with the position at which it took effect, or a problem."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.context import Context
from det_contracts.custom_search import CustomOperation
from det_contracts.events.gateway import AgentUser, AuthzMode, Grant, Note, Setting, TokenScope
from det_contracts.events.scheduler import OwnKind, PoolSettings
from det_contracts.problems import Problem
from det_contracts.provisioning import ReportWorkers


def given(command: msgspec.Struct, *names: str) -> dict[str, Any]:
    """Those fields of a command that its sender set."""
    found = {name: getattr(command, name) for name in names}
    return {name: value for name, value in found.items() if value is not msgspec.UNSET}


class Once(msgspec.Struct, frozen=True):
    """A request with an `Idempotency-Key`: what it asks for is made once, however often it comes."""

    request_id: str
    """Made of who asks and of the key; 32 hexadecimal digits."""
    key: str
    digest: str
    """Of all that was asked for, with a secret of the gateway: tells whether it is the same request."""


class Creation(msgspec.Struct, frozen=True, kw_only=True):
    """Base of commands that make something; one with `once` is ruled on once, and answered so ever after."""

    once: Once | None = None


Action = Literal["activate", "pause", "cancel", "kill", "archive", "unarchive", "delete"]
Ending = Literal["COMPLETED", "CANCELED", "ERROR"]


class Password(msgspec.Struct, frozen=True):
    """A password as it is kept; both fields are empty for the empty password.

    Argon2id in PHC's format in `hashed` alone; before that it was scrypt with a salt, both hexadecimal.
    """

    salt: str = ""
    hashed: str = ""


class Answer(msgspec.Struct, frozen=True):
    """Reply to a command or a query: `value` and the position it holds at, or a problem."""

    position: int = 0
    value: Any = None
    problem: Problem | None = None


class CreateExperiment(Creation, frozen=True, kw_only=True, tag="create_experiment"):
    """To the searcher, from the gateway. `value` of the answer: the experiment's id."""

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
    """Who its trials run as on the hosts of workers."""


class ChangeExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="change_experiment"):
    """To the searcher: a person's wish for an experiment (scheduling spec, 8.2)."""

    experiment_id: int
    action: Action
    user: str


class KillTrial(msgspec.Struct, frozen=True, kw_only=True, tag="kill_trial"):
    """To the searcher: end one trial; it ends CANCELED."""

    trial_id: int
    user: str


class CreateTrial(Creation, frozen=True, kw_only=True, tag="create_trial"):
    """To the searcher: a trial of an unmanaged experiment; the same `request_id` again has no effect."""

    experiment_id: int
    request_id: str
    hparams: dict[str, Any]
    user: str


class OpenRun(msgspec.Struct, frozen=True, kw_only=True, tag="open_run"):
    """To the searcher: a script begins to run an unmanaged trial.

    `value` of the answer: `run`, `checkpoint` and `steps_completed` of the `RunOpened`.
    """

    trial_id: int
    resume: bool
    """Whether a trial that has run before may go on."""
    user: str


class EndTrial(msgspec.Struct, frozen=True, kw_only=True, tag="end_trial"):
    """To the searcher: the script of an unmanaged trial says how it ended."""

    trial_id: int
    state: Ending
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


class SetTemplate(Creation, frozen=True, kw_only=True, tag="set_template"):
    """To the gateway: keep a partial configuration under a name; `replaces` None: in any case."""

    name: str
    config: dict[str, Any]
    user: str
    replaces: bool | None = None
    """True: there must be one of that name; False: there must be none."""
    workspace_id: int | None = None
    """None: where it is, or the first workspace."""


class RemoveTemplate(msgspec.Struct, frozen=True, kw_only=True, tag="remove_template"):
    """To the gateway: forget a template."""

    name: str
    user: str


class SetModel(Creation, frozen=True, kw_only=True, tag="set_model"):
    """To checkpoints: make a model, without an id, or change what is given of one. `value`: its id."""

    model_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    labels: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    notes: str | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    workspace_id: int | msgspec.UnsetType = msgspec.UNSET
    user: str


class RemoveModel(msgspec.Struct, frozen=True, kw_only=True, tag="remove_model"):
    """To checkpoints: forget a model and its versions."""

    model_id: int
    user: str


class SetVersion(Creation, frozen=True, kw_only=True, tag="set_version"):
    """To checkpoints: register a checkpoint as a version, or change what is given of one.

    `value` of the answer: the version's id.
    """

    model_id: int
    number: int | None = None
    """None: a new one, of `checkpoint`."""
    checkpoint: str = ""
    name: str | msgspec.UnsetType = msgspec.UNSET
    comment: str | msgspec.UnsetType = msgspec.UNSET
    notes: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    labels: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    user: str


class RemoveVersion(msgspec.Struct, frozen=True, kw_only=True, tag="remove_version"):
    """To checkpoints: forget a version; its checkpoint stays."""

    model_id: int
    number: int
    user: str


class DeleteCheckpoints(msgspec.Struct, frozen=True, kw_only=True, tag="delete_checkpoints"):
    """To checkpoints: have tasks delete checkpoints, or those files of them that globs name."""

    uuids: tuple[str, ...]
    globs: tuple[str, ...] | None = None
    """None: all of each. Empty: only list what is there."""
    user: str


class ListFiles(msgspec.Struct, frozen=True, kw_only=True, tag="list_files"):
    """To checkpoints, from a deletion task: what lies in the storage of a checkpoint now."""

    uuid: str
    resources: dict[str, int]
    task_id: str


class SetMetadata(msgspec.Struct, frozen=True, kw_only=True, tag="set_metadata"):
    """To checkpoints: describe a checkpoint otherwise."""

    uuid: str
    metadata: dict[str, Any]
    user: str


class SetUser(Creation, frozen=True, kw_only=True, tag="set_user"):
    """To the gateway: make a user, without an id, or change what is given of one. `value`: its id."""

    user_id: int | None = None
    username: str | msgspec.UnsetType = msgspec.UNSET
    admin: bool | msgspec.UnsetType = msgspec.UNSET
    active: bool | msgspec.UnsetType = msgspec.UNSET
    remote: bool | msgspec.UnsetType = msgspec.UNSET
    display_name: str | msgspec.UnsetType = msgspec.UNSET
    agent_user: AgentUser | msgspec.UnsetType | None = msgspec.UNSET
    password: Password | None = None
    user: str


class SetPassword(msgspec.Struct, frozen=True, kw_only=True, tag="set_password"):
    """To the gateway: give a user another password."""

    user_id: int
    password: Password
    user: str


class SetFirstPassword(msgspec.Struct, frozen=True, kw_only=True, tag="set_first_password"):
    """To the gateway: give a user who has no password the one of its settings; who has one keeps it."""

    user_id: int
    password: Password


class RenewPassword(msgspec.Struct, frozen=True, kw_only=True, tag="renew_password"):
    """To the gateway: keep the same password at today's cost; another one that was set meanwhile stays."""

    user_id: int
    before: Password
    password: Password


class KeepSettings(msgspec.Struct, frozen=True, kw_only=True, tag="keep_settings"):
    """To the gateway: keep these for a user, over older ones of the same path and key."""

    user_id: int
    settings: tuple[Setting, ...]
    forget: bool = False
    """Forget all others."""
    user: str


class SetGroup(Creation, frozen=True, kw_only=True, tag="set_group"):
    """To the gateway: make a group, without an id, or change what is given of one. `value`: its id."""

    group_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    add: tuple[int, ...] = ()
    """Users who are to be members."""
    remove: tuple[int, ...] = ()
    user: str


class RemoveGroup(msgspec.Struct, frozen=True, kw_only=True, tag="remove_group"):
    """To the gateway: forget a group, and the roles that were given to it."""

    group_id: int
    user: str


class SetQuota(msgspec.Struct, frozen=True, kw_only=True, tag="set_quota"):
    """To the gateway: limit what a holder may have; None is no limit, and none at all is no quota."""

    holder: str
    """As in `gateway.quota.set`."""
    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None
    user: str


class Assignment(msgspec.Struct, frozen=True):
    """A role for somebody."""

    holder: str
    """`user-<id>` or `group-<id>`."""
    grant: Grant


class AssignRoles(msgspec.Struct, frozen=True, kw_only=True, tag="assign_roles"):
    """To the gateway: give roles and take them back; all of it or nothing."""

    add: tuple[Assignment, ...] = ()
    remove: tuple[Assignment, ...] = ()
    user: str


class SetAuthz(msgspec.Struct, frozen=True, kw_only=True, tag="set_authz"):
    """To the gateway's own log, at its start: how rights are judged, according to its settings."""

    mode: AuthzMode


class SetWorkspace(Creation, frozen=True, kw_only=True, tag="set_workspace"):
    """To the gateway: make a workspace, without an id, or change what is given of one. `value`: its id."""

    workspace_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    """By the user who asks."""
    checkpoint_storage: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    agent_user: AgentUser | msgspec.UnsetType | None = msgspec.UNSET
    user: str


class RemoveWorkspace(msgspec.Struct, frozen=True, kw_only=True, tag="remove_workspace"):
    """To the gateway: forget a workspace without experiments, and its projects."""

    workspace_id: int
    user: str


class SetProject(Creation, frozen=True, kw_only=True, tag="set_project"):
    """To the gateway: make a project, without an id, or change what is given of one. `value`: its id."""

    project_id: int | None = None
    workspace_id: int | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    notes: tuple[Note, ...] | msgspec.UnsetType = msgspec.UNSET
    user: str


class RemoveProject(msgspec.Struct, frozen=True, kw_only=True, tag="remove_project"):
    """To the gateway: forget a project without experiments."""

    project_id: int
    user: str


class MoveExperiment(msgspec.Struct, frozen=True, kw_only=True, tag="move_experiment"):
    """To the gateway: file an experiment under another project."""

    experiment_id: int
    project_id: int
    user: str


class Serve(msgspec.Struct, frozen=True, kw_only=True, tag="serve"):
    """To the gateway's own log: a task answers HTTP at `host:port`; to a shell one logs in as `account`."""

    allocation_id: str
    address: str
    account: str = ""
    user: str


class JoinGather(msgspec.Struct, frozen=True, kw_only=True, tag="join_gather"):
    """To the gateway's own log: a member's share of an all-gather within an allocation; idempotent."""

    allocation_id: str
    request_id: str
    peers: int
    data: Any
    user: str


class OpenSession(msgspec.Struct, frozen=True, kw_only=True, tag="open_session"):
    """To the gateway: a user logged in."""

    session_id: str
    user_id: int
    opened_at: float
    until: float
    address: str
    client: str
    user: str


class SignIn(msgspec.Struct, frozen=True, kw_only=True, tag="sign_in"):
    """To the gateway: somebody proved to a provider who they are. `value` of the answer: the user's id."""

    issuer: str
    subject: str
    username: str
    """What they are called here who have no account yet, if `provision` says that they get one."""
    display_name: str
    groups: tuple[str, ...]
    admin: bool | None
    """Whether they administer the cluster; None: that stays as it is."""
    provision: bool
    managed: tuple[str, ...] = ()
    """Names of groups here whose members the provider says."""
    member_of: tuple[str, ...] = ()
    """Of these the ones that they are in."""


class RenewSession(msgspec.Struct, frozen=True, kw_only=True, tag="renew_session"):
    """To the gateway: a session is used, and so lives longer."""

    session_id: str
    until: float


class CloseSession(msgspec.Struct, frozen=True, kw_only=True, tag="close_session"):
    """To the gateway's own log: a user logged out, or a session was revoked."""

    session_id: str
    user: str
    revoked: bool = False


class CreateToken(msgspec.Struct, frozen=True, kw_only=True, tag="create_token"):
    """To the gateway: make an API token. `value` of the answer: its id."""

    token_id: str
    user_id: int
    name: str
    scope: TokenScope
    digest: str
    lives_s: float
    user: str


class RevokeToken(msgspec.Struct, frozen=True, kw_only=True, tag="revoke_token"):
    """To the gateway: refuse an API token from now on."""

    token_id: str
    user: str


OWNER_OF: dict[type, str] = {
    CreateExperiment: "searcher",
    ChangeExperiment: "searcher",
    ReviseExperiment: "searcher",
    PostOperations: "searcher",
    CreateTrial: "searcher",
    OpenRun: "searcher",
    EndTrial: "searcher",
    KillTrial: "searcher",
    ChangeJob: "scheduler",
    SubmitTask: "scheduler",
    StopTask: "scheduler",
    StateIdle: "scheduler",
    MarkDaemon: "scheduler",
    AskToLeave: "scheduler",
    ConfigurePools: "scheduler",
    ReportWorkers: "scheduler",
    SwitchWorker: "scheduler",
    SwitchSlot: "scheduler",
    SetTemplate: "gateway",
    RemoveTemplate: "gateway",
    SetModel: "checkpoints",
    RemoveModel: "checkpoints",
    SetVersion: "checkpoints",
    RemoveVersion: "checkpoints",
    DeleteCheckpoints: "checkpoints",
    ListFiles: "checkpoints",
    SetMetadata: "checkpoints",
    SetUser: "gateway",
    SetPassword: "gateway",
    SetFirstPassword: "gateway",
    RenewPassword: "gateway",
    KeepSettings: "gateway",
    SetGroup: "gateway",
    RemoveGroup: "gateway",
    SetQuota: "gateway",
    AssignRoles: "gateway",
    SetAuthz: "gateway",
    SetWorkspace: "gateway",
    RemoveWorkspace: "gateway",
    SetProject: "gateway",
    RemoveProject: "gateway",
    MoveExperiment: "gateway",
    Serve: "gateway",
    OpenSession: "gateway",
    RenewSession: "gateway",
    CloseSession: "gateway",
    CreateToken: "gateway",
    RevokeToken: "gateway",
    SignIn: "gateway",
    JoinGather: "gateway",
}

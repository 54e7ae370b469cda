"""Request bodies: lowerCamelCase or snake_case, unknown fields ignored (REST spec, section 1)."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

from det_contracts.events.gateway import AgentUser, TokenScope
from det_contracts.problems import invalid

Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""What fits into 64 bits: no database takes more."""
T = TypeVar("T")
Some = Annotated[list[T], Field(max_length=1000)]
"""As many as one person gives or takes at a time: each costs a ruling."""


_LIFESPAN = re.compile(r"([0-9]{1,6})([hd])")


class Body(BaseModel):
    """Base of all request bodies."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, data: Any, known: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        if known.mode != "json":
            # Else the reader has looked at all texts by itself.
            _check_texts(data)
        return {name: value for name, value in data.items() if value is not None}


def _check_texts(data: Any) -> None:
    """Raise ValueError for halves of characters: JSON may name them, and nothing can store or send them."""
    try:
        msgspec.json.encode(data)
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ValueError(f"it holds half a character, the lone surrogate {half!a}") from None
    except (OverflowError, ValueError, RecursionError):
        # Whoever wants to know what else is there looks at it.
        return


class Login(Body):
    """POST /auth/login"""

    username: str
    password: str = ""
    is_hashed: bool = False


class TicketBody(Body):
    """POST /auth/oidc/token"""

    ticket: str
    verifier: str


class TokenBody(Body):
    """POST /tokens"""

    name: str = ""
    description: str = ""
    """Another word for the name."""
    scope: TokenScope = "all"
    lifespan: str = ""
    """A number with `h` for hours or `d` for days; 30 days unless given."""
    user_id: Long = 0

    def days(self) -> float:
        """How long the token lives; raises `Refused`."""
        match = _LIFESPAN.fullmatch(self.lifespan or "30d")
        if match is None:
            raise invalid(f"lifespan: a number with 'h' or 'd' is expected, not '{self.lifespan[:40]}'")
        return int(match[1]) / (24 if match[2] == "h" else 1)


class AgentUserBody(Body):
    """Who a user is on the hosts of workers."""

    agent_uid: Long = 0
    agent_gid: Long = 0
    agent_user: str = ""
    agent_group: str = ""


def agent_user(told: AgentUserBody | None) -> AgentUser | None:
    """As events have it."""
    if told is None:
        return None
    return msgspec.convert(
        {"uid": told.agent_uid, "gid": told.agent_gid, "user": told.agent_user, "group": told.agent_group},
        AgentUser,
    )


class UserBody(Body):
    """PATCH /users/{id}: what is given is changed."""

    username: str | None = None
    admin: bool | None = None
    active: bool | None = None
    remote: bool | None = None
    display_name: str | None = None
    agent_user_group: AgentUserBody | None = None
    password: str | None = None
    is_hashed: bool = False


class UserCreation(Body):
    """POST /users"""

    user: UserBody
    password: str = ""
    is_hashed: bool = False


class SettingBody(Body):
    """One text that a page keeps for a user."""

    storage_path: str = ""
    key: str = ""
    value: str = ""


class SettingsBody(Body):
    """POST /users/setting: several, or one as pages of old versions send it."""

    settings: list[SettingBody] = []
    setting: SettingBody | None = None


class GroupBody(Body):
    """POST /groups, PUT /groups/{group_id}"""

    name: str | None = None
    add_users: Some[Long] = []
    remove_users: Some[Long] = []


class QuotaBody(Body):
    """PUT /quotas/{holder}"""

    slots: Long | None = None
    jobs: Long | None = None
    storage_bytes: Long | None = None


class RetryBody(Body):
    """POST /master/parked/retry: whose parked records are looked at once more."""

    program: str


class BindingBody(Body):
    """POST, PUT and DELETE /resource-pools/{name}/workspace-bindings: by id, by name, or both."""

    workspace_ids: list[int] | None = None
    workspace_names: list[str] | None = None


class WebhookCondition(Body):
    """When a trigger of a webhook is pulled."""

    state: str = ""


class WebhookTrigger(Body):
    """One trigger of a webhook."""

    trigger_type: str = "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"
    condition: WebhookCondition = WebhookCondition()


class WebhookBody(Body):
    """POST /webhooks"""

    url: str
    triggers: Annotated[list[WebhookTrigger], Field(max_length=20)] = []
    webhook_type: str = "WEBHOOK_TYPE_DEFAULT"
    signing_key: str = ""
    """Our addition: what receivers check signatures with; a new one is made without it."""


class GroupSearch(Body):
    """POST /groups/search"""

    user_id: Long = 0
    name: str = ""
    offset: Long = 0
    limit: Long = 0


class RoleSearch(Body):
    """POST /roles/search, POST /roles/search/by-assignability"""

    offset: Long = 0
    limit: Long = 0
    workspace_id: Long = 0


class RoleIds(Body):
    """POST /roles/search/by-ids"""

    role_ids: Some[Long] = []


class RoleBody(Body):
    """A role, as clients name it."""

    role_id: Long


class GivenRole(Body):
    """A role in a workspace, or in the whole cluster."""

    role: RoleBody
    scope_workspace_id: Long = 0
    scope_cluster: bool = False


class UserRole(Body):
    """A role for a user."""

    user_id: Long
    role_assignment: GivenRole


class GroupRole(Body):
    """A role for a group."""

    group_id: Long
    role_assignment: GivenRole


class AssignmentsBody(Body):
    """POST /roles/add-assignments, POST /roles/remove-assignments"""

    user_role_assignments: Some[UserRole] = []
    group_role_assignments: Some[GroupRole] = []


class WorkspaceBody(Body):
    """POST /workspaces, PATCH /workspaces/{id}: what is given is changed, what is empty taken away."""

    name: str | None = None
    checkpoint_storage_config: dict[str, Any] | None = None
    agent_user_group: AgentUserBody | None = None
    default_compute_pool: str | None = None
    default_aux_pool: str | None = None


class NoteBody(Body):
    """A text that belongs to a project."""

    name: str = ""
    contents: str = ""


class ProjectBody(Body):
    """POST /workspaces/{id}/projects, PATCH /projects/{id}"""

    name: str | None = None
    description: str | None = None


class NotesBody(Body):
    """PUT /projects/{id}/notes"""

    notes: list[NoteBody] = []


class ProjectMove(Body):
    """POST /projects/{id}/move"""

    destination_workspace_id: Long


class ExperimentMove(Body):
    """POST /experiments/{id}/move"""

    destination_project_id: Long


class ModelBody(Body):
    """POST /models, PATCH /models/{name}: what is given is set."""

    name: str | None = None
    description: str | None = None
    metadata: dict[str, Any] | None = None
    labels: tuple[str, ...] | None = None
    notes: str | None = None
    workspace_id: Long = 0
    workspace_name: str = ""

    def given(self) -> dict[str, Any]:
        """What a command may set."""
        found = self.model_dump(exclude={"workspace_id", "workspace_name"})
        return {name: value for name, value in found.items() if value is not None}


class ModelMove(Body):
    """POST /models/{name}/move"""

    destination_workspace_id: Long


class VersionBody(Body):
    """POST /models/{name}/versions, PATCH /models/{name}/versions/{number}"""

    checkpoint_uuid: str = ""
    name: str | None = None
    comment: str | None = None
    notes: str | None = None
    metadata: dict[str, Any] | None = None
    labels: tuple[str, ...] | None = None

    def given(self) -> dict[str, Any]:
        """What a command may set."""
        found = self.model_dump(exclude={"checkpoint_uuid"})
        return {name: value for name, value in found.items() if value is not None}


class FilePath(Body):
    """POST /experiments/{id}/file"""

    path: str


class TaskBody(Body):
    """POST /commands, POST /tensorboards, POST /notebooks, POST /shells"""

    config: dict[str, Any] = {}
    files: list[ContextItem] = []
    template_name: str = ""
    workspace_id: Long = 0
    experiment_ids: list[Long] = []
    trial_ids: list[Long] = []
    preview: bool = False
    """Of a notebook: only answer the configuration that it would have."""
    data: str = ""
    """Of a shell: base64 of JSON; a passphrase in it is refused."""


class IdleReport(Body):
    """PUT /notebooks/{id}/report_idle"""

    notebook_id: str = ""
    idle: bool


class TaskPriority(Body):
    """POST /commands/{id}/set_priority"""

    priority: Long


class CheckpointUuids(Body):
    """DELETE /checkpoints"""

    checkpoint_uuids: list[str] = []


class CheckpointFiles(CheckpointUuids):
    """POST /checkpoints/rm"""

    checkpoint_globs: list[str] = []


class CheckpointMetadata(Body):
    """POST /checkpoints/{uuid}/metadata: the checkpoint with its new metadata."""

    checkpoint: dict[str, Any] = {}


class ListedCheckpoint(Body):
    """What a deletion task found."""

    uuid: str
    resources: dict[str, Long] = {}


class ListedCheckpoints(Body):
    """PATCH /checkpoints"""

    checkpoints: list[ListedCheckpoint] = []


class ContextItem(Body):
    """One file or directory of a context."""

    path: str
    type: Long = 48
    """As in a tar header: 48 a file, 53 a directory."""
    content: str = ""
    """Base64."""
    mtime: Long = 0
    """Seconds since the epoch."""
    mode: Long = 0


class Disable(Body):
    """POST /agents/{id}/disable and /agents/{id}/slots/{id}/disable"""

    drain: bool = False


class QueueUpdate(Body):
    """One change of a job: one of the wishes, or several."""

    WISHES: ClassVar = ("aheadOf", "behindOf", "resourcePool", "priority", "weight")

    job_id: str
    ahead_of: str | None = None
    behind_of: str | None = None
    resource_pool: str | None = None
    priority: Long | None = None
    weight: float | None = None


class QueueUpdates(Body):
    """POST /job-queues"""

    updates: list[QueueUpdate] = []


class TemplateBody(Body):
    """POST /templates, PUT /templates/{name}"""

    name: str = ""
    config: dict[str, Any]
    workspace_id: Long = 0


class BulkFilters(Body):
    """Which experiments a bulk action means, beside those that are named."""

    description: str = ""
    name: str = ""
    labels: list[str] = []
    archived: bool | None = None
    states: list[str] = []
    user_ids: list[Long] = []
    project_id: Long = 0
    excluded_experiment_ids: list[Long] = []


class Bulk(Body):
    """POST /experiments/{action}, DELETE /experiments/delete"""

    experiment_ids: list[Long] = []
    filters: BulkFilters | None = None


class BulkMove(Bulk):
    """POST /experiments/move"""

    destination_project_id: Long


class NewTrial(Body):
    """POST /trials"""

    experiment_id: Long
    hparams: dict[str, Any] = {}


class TrialPut(Body):
    """PUT /trials"""

    external_trial_id: str = ""
    create_trial_request: NewTrial


class TrialPatch(Body):
    """PATCH /trials/{id}"""

    state: str = ""


class TrialStart(Body):
    """POST /trials/{id}/start"""

    resume: bool = False


class CreateExperiment(Body):
    """POST /experiments"""

    config: str = ""
    model_definition: list[ContextItem] = []
    validate_only: bool = False
    activate: bool = False
    parent_id: Long = 0
    project_id: Long = 0
    template: str = ""
    unmanaged: bool = False

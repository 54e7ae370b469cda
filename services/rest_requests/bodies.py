"""Request bodies for experiments, models, tasks and the other things that people create and run."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from det_contracts.events.webhooks import KINDS, TRIGGER_STATES
from services.people.commands.parked import DECIDERS
from services.rest_requests.bodies_of_people import AgentUserBody
from services.rest_requests.body import Body, Flag, Long, documented, requires

GitText = Annotated[str, Field(max_length=2000)]
"""Text describing a git checkout; the limit is in characters."""


Program = Annotated[str, documented(enum=DECIDERS)]
STATE_CHANGE = "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"
"""The only trigger of webhooks."""
WEBHOOK_TYPES = [f"WEBHOOK_TYPE_{kind}" for kind in KINDS]


class RetryBody(Body):
    """POST /master/parked/retry: the program that retries what it could not decide or process."""

    program: Program


class SkipBody(Body):
    """POST /master/parked/skip: the event that a program is to skip, and why that is right."""

    program: Program
    stream: str = "CONTROL"
    position: Long
    reason: Annotated[str, Field(max_length=2000)]


class RebuildBody(Body):
    """POST /master/rebuild: the program whose database is rebuilt from the log."""

    program: Program


class LogBody(Body):
    """How services print their own logs."""

    level: str | None = None
    color: Flag | None = None


class MasterConfigPart(Body):
    """What of the master's configuration can be changed while it runs."""

    log: LogBody = LogBody()


class MaskBody(Body):
    """Which parts of a record are meant."""

    paths: Annotated[
        list[Annotated[str, documented(enum=["log", "log.level", "log.color"])]], Field(max_length=20)
    ] = []


class MasterConfigBody(Body):
    """PATCH /master/config"""

    config: MasterConfigPart = MasterConfigPart()
    field_mask: MaskBody = MaskBody()


class BindingBody(Body):
    """POST, PUT and DELETE /resource-pools/{name}/workspace-bindings: workspaces by id, by name, or both."""

    workspace_ids: list[Long] | None = None
    workspace_names: list[str] | None = None


class ConditionBody(Body):
    """The condition on which a webhook trigger fires."""

    model_config = requires("state")

    state: Annotated[
        str, documented(enum=[*TRIGGER_STATES, *(f"STATE_{state}" for state in TRIGGER_STATES)])
    ] = ""


class TriggerBody(Body):
    """One trigger of a webhook."""

    model_config = requires("condition")

    trigger_type: Annotated[str, documented(enum=[STATE_CHANGE])] = STATE_CHANGE
    condition: ConditionBody = ConditionBody()


class WebhookBody(Body):
    """POST /webhooks"""

    url: Annotated[str, documented(pattern="^https?://.")]
    triggers: Annotated[list[TriggerBody], Field(max_length=20)] = []
    webhook_type: Annotated[str, documented(enum=WEBHOOK_TYPES)] = WEBHOOK_TYPES[0]
    signing_key: str = ""
    """Extension: the key with which receivers verify signatures. One is generated if it is empty."""


class WorkspaceBody(Body):
    """PATCH /workspaces/{id}: present fields are changed, empty ones are cleared."""

    name: Annotated[str, documented(minLength=1)] | None = None
    checkpoint_storage_config: dict[str, Any] | None = None
    agent_user_group: AgentUserBody | None = None
    default_compute_pool: str | None = None
    default_aux_pool: str | None = None


class NewWorkspace(WorkspaceBody):
    """POST /workspaces"""

    model_config = requires("name")


class NoteBody(Body):
    """A note of a project."""

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
    """PATCH /models/{name}: fields that are present are set."""

    name: Annotated[str, documented(minLength=1)] | None = None
    description: str | None = None
    metadata: dict[str, Any] | None = None
    labels: tuple[str, ...] | None = None
    notes: str | None = None
    workspace_id: Long = 0
    workspace_name: str = ""

    def changes(self) -> dict[str, Any]:
        """The fields to set, as passed to the command."""
        fields = self.model_dump(exclude={"workspace_id", "workspace_name"})
        return {name: value for name, value in fields.items() if value is not None}


class NewModel(ModelBody):
    """POST /models"""

    model_config = requires("name")


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

    def changes(self) -> dict[str, Any]:
        """The fields to set, as passed to the command."""
        fields = self.model_dump(exclude={"checkpoint_uuid"})
        return {name: value for name, value in fields.items() if value is not None}


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
    preview: Flag = False
    """For a notebook: return the configuration it would have, without starting it."""
    data: str = ""
    """For a shell: base64-encoded JSON. A passphrase in it is refused."""


class IdleReport(Body):
    """PUT /notebooks/{id}/report_idle"""

    notebook_id: str = ""
    idle: Flag


class TaskPriority(Body):
    """POST /commands/{id}/set_priority"""

    priority: Long


class CheckpointUuids(Body):
    """DELETE /checkpoints"""

    checkpoint_uuids: Annotated[list[str], documented(minItems=1)]


class CheckpointFiles(CheckpointUuids):
    """POST /checkpoints/rm"""

    checkpoint_globs: list[str] = []


class NewMetadata(Body):
    """A checkpoint, of which the metadata is read."""

    metadata: dict[str, Any]


class CheckpointMetadata(Body):
    """POST /checkpoints/{uuid}/metadata: the checkpoint with its new metadata."""

    checkpoint: NewMetadata


class ListedCheckpoint(Body):
    """The files of a checkpoint, as listed by a deletion task."""

    uuid: str
    resources: dict[str, Long] = {}

    @field_validator("resources", mode="before")
    @classmethod
    def _unwrap(cls, body: Any) -> Any:
        # 0.25 sends `{"resources": {...}}` in its place.
        inner = body.get("resources") if isinstance(body, dict) else None
        return inner if isinstance(inner, dict) else body


class ListedCheckpoints(Body):
    """PATCH /checkpoints"""

    checkpoints: list[ListedCheckpoint] = []


class ContextItem(Body):
    """One file or directory of a context."""

    path: str
    type: Long = 48
    """The entry type, as in a tar header: 48 for a file, 53 for a directory."""
    content: str = ""
    """The file's content in base64."""
    mtime: Long = 0
    """Seconds since the epoch."""
    mode: Long = 0


class Disable(Body):
    """POST /agents/{id}/disable and /agents/{id}/slots/{id}/disable"""

    drain: Flag = False


class QueueUpdate(Body):
    """One update of a job; it contains one or more of the fields in `CHANGE_FIELDS`."""

    CHANGE_FIELDS: ClassVar = ("aheadOf", "behindOf", "resourcePool", "priority", "weight")

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
    """Selects experiments for a bulk action, in addition to those listed by id."""

    description: str = ""
    name: str = ""
    labels: list[str] = []
    archived: Flag | None = None
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

    resume: Flag = False


class CreateExperiment(Body):
    """POST /experiments"""

    config: str = ""
    model_definition: list[ContextItem] = []
    validate_only: Flag = False
    activate: Flag = False
    parent_id: Long = 0
    project_id: Long = 0
    template: str = ""
    git_remote: GitText = ""
    """This and the next three fields identify the commit that the code was checked out from. They are shown
    where a decision is explained.
    """
    git_commit: GitText = ""
    git_committer: GitText = ""
    git_commit_date: GitText = ""
    unmanaged: Flag = False

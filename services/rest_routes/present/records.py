"""Shapes of the records in answers, other than those built from columns (`answers.py`)."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from services.catalogue.columns.column import Instant, Long, ShownState


class AgentUser(TypedDict):
    """A user's Unix account on the worker hosts."""

    agentUid: int
    agentGid: int
    agentUser: str
    agentGroup: str


class User(TypedDict):
    """A user account."""

    id: int
    username: str
    admin: bool
    active: bool
    agentUserGroup: AgentUser | None
    displayName: str
    modifiedAt: Instant | None
    remote: bool


class Workspace(TypedDict):
    """A workspace as seen by one user."""

    state: str
    errorMessage: str
    id: int
    name: str
    archived: bool
    immutable: bool
    userId: int
    username: str
    numProjects: int
    numExperiments: int
    pinned: bool
    checkpointStorageConfig: dict[str, Any] | None
    agentUserGroup: AgentUser | None
    defaultComputePool: str
    defaultAuxPool: str


class WebhookCondition(TypedDict):
    """The condition on which a webhook trigger fires."""

    state: str


class WebhookTrigger(TypedDict):
    """A trigger of a webhook."""

    id: int
    triggerType: str
    condition: WebhookCondition
    webhookId: int


class Webhook(TypedDict):
    """A URL that is notified when experiments change state."""

    id: int
    url: str
    triggers: list[WebhookTrigger]
    webhookType: str
    signingKey: str
    username: str
    waiting: int


class WebhookAttempt(TypedDict):
    """One delivery attempt."""

    attempt: int
    time: Instant
    status: int
    problem: str
    seconds: float


class WebhookDelivery(TypedDict):
    """A notification of a webhook, pending or finished."""

    id: str
    eventType: str
    experimentId: int | None
    experimentName: str
    experimentState: str
    time: Instant
    state: str
    nextAttempt: Instant | None
    attempts: list[WebhookAttempt]
    reason: str


class Note(TypedDict):
    """A note of a project."""

    name: str
    contents: str


class Project(TypedDict):
    """A project."""

    state: str
    errorMessage: str
    id: int
    name: str
    description: str
    archived: bool
    immutable: bool
    userId: int
    username: str
    notes: list[Note]
    workspaceId: int
    workspaceName: str
    numExperiments: int
    numActiveExperiments: int
    lastExperimentStartedAt: Instant | None


class Metrics(TypedDict):
    """Metric values by name."""

    avgMetrics: dict[str, Any]
    batchMetrics: list[Any]


class CheckpointTraining(TypedDict):
    """The training run that stored a checkpoint."""

    trialId: int
    experimentId: int
    experimentConfig: dict[str, Any]
    hparams: dict[str, Any]
    trainingMetrics: Metrics
    validationMetrics: Metrics
    searcherMetric: float | None


class Checkpoint(TypedDict):
    """A checkpoint, with the metrics reported at its step."""

    uuid: str
    taskId: str
    allocationId: str
    reportTime: Instant
    resources: dict[str, Long]
    metadata: dict[str, Any]
    state: ShownState
    training: CheckpointTraining


class Model(TypedDict):
    """A named series of checkpoints."""

    id: int
    name: str
    description: str
    metadata: dict[str, Any]
    labels: list[str]
    notes: str
    archived: bool
    creationTime: Instant
    lastUpdatedTime: Instant
    numVersions: int
    username: str
    userId: int
    workspaceId: int


class Device(TypedDict):
    """The device behind a slot."""

    id: int
    brand: str
    uuid: str
    type: str


class Container(TypedDict):
    """A container running on a worker's slots."""

    parent: str
    id: str
    state: str
    devices: list[Device]


class Slot(TypedDict):
    """A slot of a worker."""

    id: str
    device: Device
    enabled: bool
    container: Container | None
    draining: bool


class RunLimit(TypedDict):
    """How much of one thing (memory, processes, processor, disk) each run on a worker may use."""

    kind: str
    holds: bool
    text: str


class Agent(TypedDict):
    """A worker."""

    id: str
    registeredTime: Instant
    slots: dict[str, Slot]
    containers: dict[str, Container]
    label: str
    resourcePools: list[str]
    addresses: list[str]
    enabled: bool
    draining: bool
    version: str
    launcher: str
    runLimits: list[RunLimit]


class JobSummary(TypedDict):
    """A job's state and place in the queue."""

    state: str
    jobsAhead: int


class Job(TypedDict):
    """A job of the scheduler's queue."""

    summary: JobSummary
    type: str
    submissionTime: Instant
    username: str
    userId: int | None
    resourcePool: str
    isPreemptible: bool
    priority: int
    weight: float
    entityId: str
    jobId: str
    requestedSlots: int
    allocatedSlots: int
    name: str
    progress: float
    workspaceId: int
    waitsFor: str
    canStart: bool
    startsIn: float | None
    endsIn: float | None


class Task(TypedDict):
    """A command, a TensorBoard, a notebook or a shell."""

    id: str
    description: str
    state: str
    startTime: Instant
    displayName: str
    userId: int
    username: str
    resourcePool: str
    exitStatus: str
    jobId: str
    workspaceId: int
    container: None
    experimentIds: NotRequired[list[int]]
    trialIds: NotRequired[list[int]]
    serviceAddress: NotRequired[str]
    addresses: NotRequired[list[dict[str, Any]]]
    agentUserGroup: NotRequired[dict[str, Any]]
    publicKey: NotRequired[str]
    hostKey: NotRequired[str]


class Template(TypedDict):
    """A named partial configuration."""

    name: str
    config: dict[str, Any]
    workspaceId: int


class LogProgress(TypedDict):
    """How far a process is with a stream of the log, or with saving it."""

    position: int
    behind: int
    lateSeconds: float


class StreamProgress(LogProgress):
    """How far a process has read a stream of the log."""

    stream: str


class ProcessProgress(TypedDict):
    """How far one process of a service is; `saved` is null if it saves nothing now."""

    program: str
    replica: str
    leads: bool
    streams: list[StreamProgress]
    saved: LogProgress | None


class ServicesProgress(TypedDict):
    """How far each process of the control plane is, and which services did not answer."""

    processes: list[ProcessProgress]
    silent: list[str]

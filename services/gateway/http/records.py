"""Shapes of the records that answers hold, beside those that are made of columns (`answers.py`)."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from services.catalogue.columns.column import Instant, Long, ShownState


class AgentUser(TypedDict):
    """Who a user is on the hosts of workers."""

    agentUid: int
    agentGid: int
    agentUser: str
    agentGroup: str


class User(TypedDict):
    """Somebody who may log in."""

    id: int
    username: str
    admin: bool
    active: bool
    agentUserGroup: AgentUser | None
    displayName: str
    modifiedAt: Instant
    remote: bool


class Workspace(TypedDict):
    """A workspace, as one user sees it."""

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
    """When a trigger is pulled."""

    state: str


class WebhookTrigger(TypedDict):
    """What a webhook waits for."""

    id: int
    triggerType: str
    condition: WebhookCondition
    webhookId: int


class Webhook(TypedDict):
    """Whoever is told when experiments change their state."""

    id: int
    url: str
    triggers: list[WebhookTrigger]
    webhookType: str
    signingKey: str
    username: str
    waiting: int


class WebhookAttempt(TypedDict):
    """One attempt to deliver."""

    attempt: int
    time: Instant
    status: int
    problem: str
    seconds: float


class WebhookDelivery(TypedDict):
    """Something that a webhook is told, or was."""

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
    """A text that belongs to a project."""

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


class Metrics(TypedDict):
    """Values by name."""

    avgMetrics: dict[str, Any]
    batchMetrics: list[Any]


class CheckpointTraining(TypedDict):
    """What a checkpoint was stored by."""

    trialId: int
    experimentId: int
    experimentConfig: dict[str, Any]
    hparams: dict[str, Any]
    trainingMetrics: Metrics
    validationMetrics: Metrics
    searcherMetric: float | None


class Checkpoint(TypedDict):
    """A checkpoint, with what was reported at its step."""

    uuid: str
    taskId: str
    allocationId: str
    reportTime: Instant
    resources: dict[str, Long]
    metadata: dict[str, Any]
    state: ShownState
    training: CheckpointTraining


class Model(TypedDict):
    """A named line of checkpoints."""

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
    """What a slot is."""

    id: int
    brand: str
    uuid: str
    type: str


class Container(TypedDict):
    """What runs on slots of a worker."""

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


class JobSummary(TypedDict):
    """State and place of a job."""

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

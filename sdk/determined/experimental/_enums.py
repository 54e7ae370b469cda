"""Enumerations that client calls accept and return (client spec, section 2)."""

from __future__ import annotations

import enum


class ExperimentState(enum.Enum):
    """State of an experiment.

    Example:
        ```python
        if client.get_experiment(7).wait() is not client.ExperimentState.COMPLETED:
            print("the experiment did not complete")
        ```
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    PAUSED = "STATE_PAUSED"
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED"
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"
    STOPPING_ERROR = "STATE_STOPPING_ERROR"
    STOPPING_KILLED = "STATE_STOPPING_KILLED"
    COMPLETED = "STATE_COMPLETED"
    CANCELED = "STATE_CANCELED"
    ERROR = "STATE_ERROR"
    DELETED = "STATE_DELETED"
    DELETING = "STATE_DELETING"
    DELETE_FAILED = "STATE_DELETE_FAILED"
    QUEUED = "STATE_QUEUED"
    PULLING = "STATE_PULLING"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"


class CheckpointState(enum.Enum):
    """State of a checkpoint's files.

    Example:
        ```python
        checkpoints = client.get_trial(12).get_checkpoints()
        there = [c for c in checkpoints if c.state is client.CheckpointState.COMPLETED]
        ```
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    COMPLETED = "STATE_COMPLETED"
    ERROR = "STATE_ERROR"
    DELETED = "STATE_DELETED"
    PARTIALLY_DELETED = "STATE_PARTIALLY_DELETED"


class TrialOrderBy(enum.Enum):
    """Sort direction of trials.

    Example:
        ```python
        newest, *others = client.get_experiment(7).get_trials(order_by=client.TrialOrderBy.DESC)
        ```
    """

    ASCENDING = "ORDER_BY_ASC"
    ASC = ASCENDING
    DESCENDING = "ORDER_BY_DESC"
    DESC = DESCENDING


class ModelOrderBy(enum.Enum):
    """Sort direction of models and model versions.

    Example:
        ```python
        oldest, *later = client.get_model("digits").get_versions(order_by=client.ModelOrderBy.ASC)
        ```
    """

    ASCENDING = "ORDER_BY_ASC"
    ASC = ASCENDING
    DESCENDING = "ORDER_BY_DESC"
    DESC = DESCENDING


class CheckpointOrderBy(enum.Enum):
    """Sort direction of checkpoints.

    Example:
        ```python
        newest, *older = client.get_trial(12).get_checkpoints(
            client.CheckpointSortBy.BATCH_NUMBER, client.CheckpointOrderBy.DESC
        )
        ```
    """

    ASC = "ORDER_BY_ASC"
    DESC = "ORDER_BY_DESC"


class TrialSortBy(enum.Enum):
    """Sort key of an experiment's trials.

    Example:
        ```python
        longest, *others = client.get_experiment(7).get_trials(
            client.TrialSortBy.DURATION, client.TrialOrderBy.DESC
        )
        ```
    """

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    ID = "SORT_BY_ID"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    BEST_VALIDATION_METRIC = "SORT_BY_BEST_VALIDATION_METRIC"
    LATEST_VALIDATION_METRIC = "SORT_BY_LATEST_VALIDATION_METRIC"
    BATCHES_PROCESSED = "SORT_BY_BATCHES_PROCESSED"
    DURATION = "SORT_BY_DURATION"
    RESTARTS = "SORT_BY_RESTARTS"
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE"


class CheckpointSortBy(enum.Enum):
    """Sort key of a trial's checkpoints.

    Example:
        ```python
        checkpoints = client.get_trial(12).get_checkpoints(
            sort_by=client.CheckpointSortBy.END_TIME, order_by=client.CheckpointOrderBy.ASC
        )
        ```
    """

    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    UUID = "SORT_BY_UUID"
    BATCH_NUMBER = "SORT_BY_BATCH_NUMBER"


class ModelSortBy(enum.Enum):
    """Sort key of models.

    Example:
        ```python
        models = client.get_models(sort_by=client.ModelSortBy.LAST_UPDATED_TIME)
        ```
    """

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    NAME = "SORT_BY_NAME"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    CREATION_TIME = "SORT_BY_CREATION_TIME"
    LAST_UPDATED_TIME = "SORT_BY_LAST_UPDATED_TIME"
    NUM_VERSIONS = "SORT_BY_NUM_VERSIONS"
    WORKSPACE = "SORT_BY_WORKSPACE"


class LogLevel(enum.Enum):
    """Severity of a log line, from least to most severe.

    Example:
        ```python
        for line in client.get_trial(12).logs(min_level=client.LogLevel.WARNING):
            print(line, end="")
        ```
    """

    TRACE = "LOG_LEVEL_TRACE"
    DEBUG = "LOG_LEVEL_DEBUG"
    INFO = "LOG_LEVEL_INFO"
    WARNING = "LOG_LEVEL_WARNING"
    ERROR = "LOG_LEVEL_ERROR"
    CRITICAL = "LOG_LEVEL_CRITICAL"


class DownloadMode(enum.Enum):
    """How a checkpoint is downloaded.

    Example:
        ```python
        folder = client.get_checkpoint(uuid).download(mode=client.DownloadMode.MASTER)
        ```
    """

    DIRECT = "direct"
    """From the storage itself, with the user's own credentials."""
    MASTER = "master"
    """Through the master."""
    AUTO = "auto"
    """Directly if possible, otherwise through the master."""

    def __str__(self) -> str:
        return self.value


def on_the_wire(argument: str, member: enum.Enum) -> str:
    """An enumeration's value as the master takes it; raises TypeError for what is no member of one."""
    if not isinstance(member, enum.Enum):
        example = "TrialSortBy.ID" if argument == "sort_by" else "TrialOrderBy.ASC"
        raise TypeError(f"{argument} must be a member of an enumeration as client.{example}, not {member!r}")
    return str(member.value)

"""The exceptions that scripts may catch by name (core API spec, section 1).

BaseException
  InvalidExperimentException
    InvalidDataTypeException
    InvalidConfigurationException
    InvalidModelException
Exception
  EnterpriseOnlyError
  InternalException
  InvalidHP
  InvalidCheckpointException
  StopLoadingImplementation
  WorkerError
  WorkerFinishedGracefully
  SkipWorkloadException
  CheckpointNotFound
  CheckpointStateException
  NoDirectStorageAccess
    ProxiedDownloadFailed
    MultipleDownloadsFailed
RuntimeError
  SearcherMetricMissing
"""


class InvalidExperimentException(BaseException):
    """The experiment cannot run as written. Not an Exception, so that broad handlers do not hide it."""


class InvalidDataTypeException(InvalidExperimentException):
    """User code passed an object of an unsupported type."""

    def __init__(self, typ: object, message: str = "") -> None:
        super().__init__(f"invalid data type {typ}: {message}")
        self.type_received = typ


class InvalidConfigurationException(InvalidExperimentException):
    """The experiment configuration contradicts itself or the code."""

    def __init__(self, config: object = None, message: str = "") -> None:
        super().__init__(message)
        self.config = config


class InvalidModelException(InvalidExperimentException):
    """The model definition is incomplete, or defines more than is allowed."""


class SearcherMetricMissing(RuntimeError):
    """No metric of a validation has the name that the search uses. Another try would fail alike."""


class EnterpriseOnlyError(Exception):
    """The feature was never part of the open-source product."""


class InternalException(Exception):
    """A platform failure, not an error in user code."""


class InvalidHP(Exception):
    """Raise this to end a trial whose hyperparameters are unusable. The search continues without it.

    Example:
        ```python
        if hparams["batch_size"] > len(dataset):
            raise det.InvalidHP("batch_size is larger than the data set")
        ```
    """

    def __init__(self, msg: str = "the hyperparameters of this trial are not usable") -> None:
        if not isinstance(msg, str):
            raise TypeError(f"InvalidHP takes a message of type str, not {type(msg).__name__}: {msg!r}")
        super().__init__(msg)
        self.msg = msg


class InvalidCheckpointException(Exception):
    """The checkpoint does not hold what the loader needs."""


class StopLoadingImplementation(Exception):
    """Loading of user code was ended early on purpose."""


class WorkerError(Exception):
    """A worker process failed."""


class WorkerFinishedGracefully(Exception):
    """A worker process finished without an error."""


class SkipWorkloadException(Exception):
    """The current workload is skipped on purpose."""


class CheckpointNotFound(Exception):
    """The storage holds no checkpoint with that storage id.

    Example:
        ```python
        try:
            core_context.checkpoint.download(storage_id, "pretrained")
        except det.errors.CheckpointNotFound:
            print(f"checkpoint {storage_id} is not in the storage")
        ```
    """


class CheckpointStateException(Exception):
    """The checkpoint exists, but its state does not allow the request.

    Example:
        ```python
        try:
            path = client.get_checkpoint(uuid).download()
        except det.errors.CheckpointStateException as error:
            print(error)    # its files are deleted, or not stored yet
        ```
    """


class NoDirectStorageAccess(Exception):
    """This process cannot access the checkpoint storage directly.

    Example:
        ```python
        try:
            path = checkpoint.download()
        except det.errors.NoDirectStorageAccess as error:
            print(error)    # why neither the storage nor the master gave the files
        ```
    """


class ProxiedDownloadFailed(NoDirectStorageAccess):
    """The download through the master failed."""


class MultipleDownloadsFailed(NoDirectStorageAccess):
    """Both the direct download and the one through the master failed."""

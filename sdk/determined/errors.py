"""Every exception that scripts may catch by name (core API spec, section 1).

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
"""


class InvalidExperimentException(BaseException):
    """The experiment cannot run as written; not an Exception, so that no broad handler hides it."""


class InvalidDataTypeException(InvalidExperimentException):
    """User code handed over an object of a type that cannot be used."""

    def __init__(self, typ: object, message: str = "") -> None:
        super().__init__(f"invalid data type {typ}: {message}")
        self.type_received = typ


class InvalidConfigurationException(InvalidExperimentException):
    """The experiment configuration contradicts itself or the code."""

    def __init__(self, config: object = None, message: str = "") -> None:
        super().__init__(message)
        self.config = config


class InvalidModelException(InvalidExperimentException):
    """The model definition lacks something or has too much of it."""


class EnterpriseOnlyError(Exception):
    """The feature never was part of the open product."""


class InternalException(Exception):
    """A fault of the platform, not of the user's code."""


class InvalidHP(Exception):
    """Raise it to end a trial whose hyperparameters make no sense; the search goes on without it."""

    def __init__(self, msg: str = "the hyperparameters of this trial are not usable") -> None:
        if not isinstance(msg, str):
            raise TypeError(f"InvalidHP takes a message of type str, not {type(msg).__name__}: {msg!r}")
        super().__init__(msg)
        self.msg = msg


class InvalidCheckpointException(Exception):
    """The checkpoint does not hold what the loader needs."""


class StopLoadingImplementation(Exception):
    """Loading of user code ended early on purpose."""


class WorkerError(Exception):
    """A worker process failed."""


class WorkerFinishedGracefully(Exception):
    """A worker process is done; nothing is wrong."""


class SkipWorkloadException(Exception):
    """The current workload is left out on purpose."""


class CheckpointNotFound(Exception):
    """No checkpoint with that storage id exists in this storage."""


class CheckpointStateException(Exception):
    """The checkpoint exists but its state forbids the request."""


class NoDirectStorageAccess(Exception):
    """This process cannot reach the checkpoint storage itself."""


class ProxiedDownloadFailed(NoDirectStorageAccess):
    """The download through the master failed."""


class MultipleDownloadsFailed(NoDirectStorageAccess):
    """Both the direct download and the one through the master failed."""

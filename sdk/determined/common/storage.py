"""Checkpoint storage, under the name that published scripts import."""

from determined import _absent
from determined.storage import (
    AzureStorageManager,
    CloudStorageManager,
    GCSStorageManager,
    S3StorageManager,
    SharedFSStorageManager,
    StorageManager,
    build,
    from_string,
    validate_config,
    validate_manager,
)

__path__: list[str] = []
_absent.explain_in(__name__)

__all__ = [
    "AzureStorageManager",
    "CloudStorageManager",
    "GCSStorageManager",
    "S3StorageManager",
    "SharedFSStorageManager",
    "StorageManager",
    "build",
    "from_string",
    "validate_config",
    "validate_manager",
]

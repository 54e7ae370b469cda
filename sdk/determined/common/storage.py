"""The name under which published scripts import checkpoint storage."""

from determined.storage import (
    S3StorageManager,
    SharedFSStorageManager,
    StorageManager,
    build,
    from_string,
    validate_config,
    validate_manager,
)

__all__ = [
    "S3StorageManager",
    "SharedFSStorageManager",
    "StorageManager",
    "build",
    "from_string",
    "validate_config",
    "validate_manager",
]

"""Checkpoint storage: directories and object stores behind one interface."""

from determined.storage.base import CloudStorageManager, StorageManager
from determined.storage.build import build, from_string, validate_config, validate_manager
from determined.storage.clouds import AzureStorageManager, GCSStorageManager
from determined.storage.directory import SharedFSStorageManager
from determined.storage.listing import Resources, Selector
from determined.storage.s3 import S3StorageManager

__all__ = [
    "AzureStorageManager",
    "CloudStorageManager",
    "GCSStorageManager",
    "Resources",
    "S3StorageManager",
    "Selector",
    "SharedFSStorageManager",
    "StorageManager",
    "build",
    "from_string",
    "validate_config",
    "validate_manager",
]

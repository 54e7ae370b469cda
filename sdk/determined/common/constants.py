"""Client limits and defaults that scripts read from this module."""

from determined.context import ALWAYS_IGNORED, IGNORE_FILE, LIMIT_BYTES

DEFAULT_DETERMINED_USER = "determined"
DEFAULT_DETERMINED_PASSWORD = ""
DEFAULT_CHECKPOINT_PATH = "checkpoints"
DEFAULT_DETIGNORE = [pattern for pattern in ALWAYS_IGNORED if pattern != IGNORE_FILE]
MAX_CONTEXT_SIZE = LIMIT_BYTES
SHARED_FS_CONTAINER_PATH = "/determined_shared_fs"

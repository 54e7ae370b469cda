"""`python -m services.archive`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.archive.app import serve
from services.archive.settings import Settings
from services.kit.until_stopped import run_until_stopped

run_until_stopped("archive", Settings, serve)

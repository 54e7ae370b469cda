"""`python -m services.archive`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.archive.app import serve
from services.archive.settings import Settings
from services.kit.service_process import run_service

run_service("archive", Settings, serve)

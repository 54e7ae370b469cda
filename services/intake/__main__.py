"""`python -m services.intake`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.intake.app import serve
from services.kit.service_process import run_service
from services.kit.settings import ServiceSettings

run_service("intake", ServiceSettings, serve)

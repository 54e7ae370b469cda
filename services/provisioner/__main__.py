"""`python -m services.provisioner`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.kit.service_process import run_service
from services.provisioner.app import serve
from services.provisioner.settings import Settings

run_service("provisioner", Settings, serve)

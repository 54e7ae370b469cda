"""`python -m services.provisioner`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.kit.until_stopped import run_until_stopped
from services.provisioner.app import serve
from services.provisioner.settings import Settings

run_until_stopped("provisioner", Settings, serve)

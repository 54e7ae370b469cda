"""`python -m services.intake`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.intake.app import serve
from services.kit.settings import ServiceSettings
from services.kit.until_stopped import run_until_stopped

run_until_stopped("intake", ServiceSettings, serve)

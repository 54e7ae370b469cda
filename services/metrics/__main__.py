"""`python -m services.metrics`"""

import os

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.kit.host import main
from services.metrics.app import configured

main(configured(os.environ))

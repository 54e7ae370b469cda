"""`python -m services.checkpoints`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.checkpoints.app import SERVICE
from services.kit.host import main

main(SERVICE)

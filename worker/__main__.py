"""`python -m worker`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from worker.app import main

main()

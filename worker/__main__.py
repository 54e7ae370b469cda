"""`python -m worker`"""

import services.kit.lean  # noqa: F401  # isort: split
from worker.app import main

main()

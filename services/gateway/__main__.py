"""`python -m services.gateway`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.gateway.app import SERVICE
from services.kit.host import main

main(SERVICE)

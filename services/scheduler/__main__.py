"""`python -m services.scheduler`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.kit.host import main
from services.scheduler.app import SERVICE

main(SERVICE)

"""`python -m services.webhooks`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.kit.host import main
from services.webhooks.app import SERVICE

main(SERVICE)

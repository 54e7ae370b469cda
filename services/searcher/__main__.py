"""`python -m services.searcher`"""

import services.kit.import_trimming  # noqa: F401  # isort: split
from services.kit.host import main
from services.searcher.app import SERVICE

main(SERVICE)

"""Imported by each program before anything else: what no program needs, and some library would load.

structlog loads rich where that is installed, as it is beside `det`: 7 MB of memory for each process, none
of which ever draws with it.
"""

import sys

sys.modules["rich"] = None  # type: ignore[assignment]

"""Imported by each program before anything else, to keep a library from loading what no program needs.

structlog imports rich if it is installed, as it is beside `det`. That costs each process 7 MB of memory for a
renderer that is never used.
"""

import sys

sys.modules["rich"] = None  # type: ignore[assignment]

"""Imported by each program before anything else, to keep libraries from loading what no program needs.

They load these wherever they are installed, as they are beside `det` and the frameworks of training:

- structlog loads rich, for tracebacks in color: 7 MB of memory for each process,
- alembic's templates load pygments, for errors in color,
- the broker's client loads aiohttp, for addresses that begin with `ws:`; both together 11 MB and 0.13 s of
  processor time.
"""

import sys

for library in ("rich", "pygments", "aiohttp"):
    # One that is loaded already is in use: by tests that import parts of programs.
    sys.modules.setdefault(library, None)  # type: ignore[arg-type]
